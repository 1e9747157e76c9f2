// run --resume --change at the command line: what it refuses, and what is told of it.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/app/call.h"
#include "tests/catch.h"

using namespace pmaptrain::tests;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

// A run of linear regression that stopped after ten of its fifty steps.
struct Stopped {
  Stopped() {
    const Finished begun = call({"run", linear, "--run-dir", run, "--max-steps", "10", "--quiet"});
    INFO(begun.err);
    REQUIRE(begun.status == 0);
  }
  Finished resume(const std::vector<std::string>& more, const std::string& config = "") const {
    std::vector<std::string> arguments = {"run", config.empty() ? run : config, "--run-dir", run, "--resume"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return call_with_display(arguments);
  }
  const TemporaryFolder folder;
  const std::string run = folder / "run";
};

}  // namespace

TEST_CASE("--change without --resume is refused, with what a new run takes", "[app]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const Finished alone = call({"run", linear, "--run-dir", run, "--change", "optimizer.learning_rate=0.1", "--change",
                               "optimizer.sgd.momentum=0.5"});
  CHECK(alone.status == 2);
  CHECK(alone.err ==
        "error: --change changes a run that --resume continues\n"
        "  help: --resume --change goes on with a run that there is; a new one begins with the value: --set "
        "optimizer.learning_rate=0.1 --set optimizer.sgd.momentum=0.5\n");
  const Finished first = call({"run", linear, "--run-dir", run, "--resume", "--change", "optimizer.learning_rate=0.1"});
  CHECK(first.status == 2);
  CHECK(first.err == "error: --change has nothing to change: '" + run +
                         "' has no checkpoint to resume from\n"
                         "  help: the run begins with the value: --set optimizer.learning_rate=0.1\n");
  const Finished planned = call({"run", linear, "--resume", "--dry-run", "--change", "optimizer.learning_rate=0.1"});
  CHECK(planned.status == 2);
  CHECK(contains(planned.err, "and --dry-run continues none"));
  CHECK_FALSE(fs::exists(run));
}

TEST_CASE("another rate on --resume is refused with the words that change it, and they do", "[app]") {
  const Stopped stopped;
  const Finished refused = stopped.resume({"--set", "optimizer.learning_rate=0.025"}, linear);
  CHECK(refused.status == 2);
  const std::string words = "pmaptrain run " + stopped.run + " --resume --change optimizer.learning_rate=0.025";
  CHECK(contains(refused.err, "--set:1:25: error: --resume cannot change optimizer.learning_rate: the run has "));
  CHECK(contains(refused.err, "\n  help: " + words +
                                  " changes it from the resumed step on; or begin another run (--name), from this "
                                  "one's parameters with model.init.from: " +
                                  stopped.run + "\n"));
  const Finished changed = call_with_display(
      {"run", stopped.run, "--resume", "--change", "optimizer.learning_rate=0.025", "--json", "--quiet"});
  CHECK(changed.status == 0);
  const json summary = json::parse(changed.out);
  CHECK(summary["steps"] == 50);
  REQUIRE(summary["changes"].size() == 1);
  CHECK(summary["changes"][0]["step"] == 10);
  CHECK(summary["changes"][0]["value"] == 0.025);
}

TEST_CASE("two values of --change for one key are refused", "[app]") {
  const Stopped stopped;
  const Finished changed =
      stopped.resume({"--change", "optimizer.learning_rate=0.5", "--change", "optimizer.learning_rate=0.025"});
  CHECK(changed.status == 2);
  CHECK(contains(changed.err,
                 "--change:1:1: error: this changes what --change optimizer.learning_rate=0.5 changes, too\n"
                 "    1 | optimizer.learning_rate=0.025\n"));
}

TEST_CASE("a refused change points into its argument and leaves the run as it is", "[app]") {
  const Stopped stopped;
  const std::string before = pmaptrain::test::listing(stopped.run);
  const Finished refused = stopped.resume({"--change", "seed=3"});
  CHECK(refused.status == 2);
  CHECK(
      contains(refused.err,
               "--change:1:1: error: 'seed' cannot change within a run: what dropout leaves out, and the order of the "
               "examples, are drawn from it\n"
               "    1 | seed=3\n"
               "      | ^~~~\n"
               "  help: begin another run (--name), from this one's parameters with model.init.from\n"));
  CHECK(pmaptrain::test::listing(stopped.run) == before);
}

TEST_CASE("a finished run is not changed, and says what would continue it", "[app]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(call({"run", linear, "--run-dir", run, "--quiet"}).status == 0);
  const Finished ended = call({"run", run, "--resume", "--change", "optimizer.learning_rate=0.1"});
  CHECK(ended.status == 2);
  CHECK(contains(ended.err,
                 "--change:1:1: error: the run has ended after step 50, so no step is left that a change "
                 "applies to\n"));
  CHECK(contains(ended.err, "  help: a longer train.duration continues it\n"));
  const Finished reached = call({"run", run, "--resume", "--max-steps", "50", "--set", "train.duration=60 steps",
                                 "--change", "optimizer.learning_rate=0.1"});
  CHECK(reached.status == 2);
  CHECK(contains(reached.err, "the run is finished, so no step is left that a change applies to\n"));
  CHECK(contains(reached.err, "  help: a larger --max-steps continues it, or none\n"));
}

TEST_CASE("a config with recorded changes begins a run without them, and warns", "[app]") {
  const Stopped stopped;
  REQUIRE(stopped.resume({"--change", "optimizer.learning_rate=0.025", "--quiet"}).status == 0);
  CHECK(contains(pmaptrain::test::read_text(stopped.run + "/config.yaml"),
                 "\nx-changes:\n  - {step: 10, key: optimizer.learning_rate, value: 0.025}\n"));
  const std::string again = stopped.folder / "again";
  const Finished anew = call_with_display({"run", stopped.run, "--run-dir", again, "--max-steps", "2"});
  CHECK(anew.status == 0);
  CHECK(contains(anew.err,
                 "warning: x-changes are not repeated: the run of this config changed optimizer.learning_rate to 0.025 "
                 "after step 10, and this one keeps the values that it begins with\n"));
  CHECK_FALSE(contains(pmaptrain::test::read_text(again + "/config.yaml"), "x-changes"));
  // Neither reads them.
  for (const char* const command : {"eval", "validate"}) {
    const Finished other = command == std::string("eval") ? call({command, stopped.run, "--split", "train"})
                                                          : call({command, stopped.run});
    CHECK(other.status == 0);
    CHECK_FALSE(contains(other.err, "x-changes"));
  }
}
