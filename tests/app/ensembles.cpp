// An ensemble at the command line.
#include <nlohmann/json.hpp>

#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/train/long_run.h"
#include "tests/words.h"

using namespace pmaptrain::tests;
using nlohmann::json;
using pmaptrain::test::contains;
using pmaptrain::testing::LongRun;
using pmaptrain::testing::three_members;

TEST_CASE("eval has a line for each member of an ensemble, or for one of them", "[app][process]") {
  const LongRun run(45, three_members());
  run.complete("run");
  const auto eval = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"eval", run.path("run"), "--split", "validation"});
    return call(more);
  };
  const std::string lines = eval({}).out;
  for (const char* const member : {"member 0  validation  loss ", "\nmember 1  validation", "\nmember 2  validation"}) {
    CHECK(contains(lines, member));
  }
  CHECK(eval({"--member", "1"}).out.starts_with("member 1  validation  loss "));
  const json all = json::parse(eval({"--json"}).out), one = json::parse(eval({"--json", "--member", "2"}).out);
  const json& members = all["members"];
  REQUIRE(members.size() == 3);
  CHECK(members[2]["member"] == 2);
  CHECK(one["member"] == 2);
  CHECK(one["loss"] == members[2]["loss"]);
  CHECK(members[0]["loss"] != members[2]["loss"]);
  // What they say together is a line of its own, and the document.
  CHECK(contains(lines, "\ntogether  validation  loss "));
  CHECK(all["loss"].is_number());
  CHECK_FALSE(all.contains("member"));
  const Finished beyond = eval({"--member", "3"});
  CHECK(beyond.status == 2);
  CHECK(contains(beyond.err, "the ensemble has no member 3\n  help: its members are 0 to 2"));
}

TEST_CASE("eval --checkpoint best says whose checkpoints it evaluates, and which members have none", "[app][process]") {
  const TemporaryFolder folder;
  REQUIRE(run_binary({"run", "configs/linear_regression.yaml", "--run-dir", folder / "run", "--progress", "none",
                      "--set", "mesh.axes=[{trials: 3}, {batch: 8}]", "--set",
                      "ensemble={axis: trials, vary: {optimizer.learning_rate: [1.0e+30, 0.05, 1.5]}}", "--set",
                      "train={duration: 6 steps, eval_every: 2 steps, checkpoint: {best: {metric: loss}}}", "--set",
                      "data.validation=0.2"})
              .status == 0);
  const Finished best = call({"eval", folder / "run", "--checkpoint", "best"});
  CHECK(best.status == 0);
  // The default, with a note; a member without a best one has its last one.
  const Finished by_default = call({"eval", folder / "run"});
  CHECK(by_default.err ==
        "note: this is the best checkpoint, of each member its own; --checkpoint last takes the last one, "
        "step-00000006\n" +
            best.err);
  CHECK(contains(by_default.out, ", best checkpoint step-00000002 of "));
  CHECK(contains(call({"eval", folder / "run", "--member", "2"}).out, ", best checkpoint step-00000002 of "));
  CHECK(contains(call({"eval", folder / "run", "--member", "0"}).out, ", last checkpoint step-00000006 of "));
  CHECK(best.err ==
        "warning: member 0 has no best checkpoint and is left out: no evaluation gave it a best value; --checkpoint "
        "last has the parameters after the last step\n");
  CHECK(best.out.starts_with("member 1  validation  loss "));
  CHECK(contains(best.out, "step-00000006 of "));
  const json documents = json::parse(call({"eval", folder / "run", "--checkpoint", "best", "--json"}).out)["members"];
  REQUIRE(documents.size() == 2);
  CHECK(documents[0]["checkpoint"] == "step-00000006");
  CHECK(documents[1]["member"] == 2);
  CHECK(documents[1]["checkpoint"] == "step-00000002");  // its loss only grows
}

TEST_CASE("the errors of run --json are those of every member, whenever its guard stopped it", "[app][process]") {
  const TemporaryFolder folder;
  const Finished result =
      run_binary({"run", "configs/linear_regression.yaml", "--run-dir", folder / "run", "--json", "--set",
                  "mesh.axes=[{trials: 3}, {batch: 8}]", "--set",
                  "ensemble={axis: trials, vary: {optimizer.learning_rate: [1.0e+30, 1.0e+3, 10.0]}}", "--set",
                  "train.log_every=1 steps"});
  CHECK(result.status == 5);
  const json errors = json::parse(result.out)["errors"];
  REQUIRE(errors.size() == 3);
  for (std::size_t m = 0; m < 3; ++m) {
    const std::string message = errors[m]["message"];
    CHECK(message.starts_with("member " + std::to_string(m) + ": step "));
    CHECK(contains(result.err, "error: " + message + "\n"));
  }
  const Finished again = run_binary({"run", folder / "run", "--resume", "--json"});
  CHECK(again.status == 5);
  CHECK(json::parse(again.out)["errors"] == errors);
}

TEST_CASE("eval --member of a run without an ensemble is refused", "[app][process]") {
  const LongRun run(45);
  run.complete("run");
  const Finished refused = call({"eval", run.path("run"), "--member", "0"});
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, "member 0 is asked for, but the run is no ensemble\n  help: leave --member out"));
  CHECK_FALSE(json::parse(call({"eval", run.path("run"), "--json"}).out).contains("member"));
}
