// Commands under a launcher: what all processes do together, and what is told once.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/commands/commands.h"
#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/emulated_gpu/platform.h"
#include "tests/gpu/gpus.h"
#include "tests/runtime/placements.h"

using namespace pmaptrain;
using nlohmann::json;
using pmaptrain::tests::call;
using pmaptrain::tests::contains;
using pmaptrain::tests::Finished;
using pmaptrain::tests::linear;
using pmaptrain::tests::TemporaryFolder;

namespace {

using Arguments = std::vector<std::string>;

// What each process gives of a command that a launcher starts in several. `others`: the arguments of all but process 0,
// where they are not the same.
std::vector<Finished> call_in_processes(int processes, const Arguments& arguments, const Arguments& others = {}) {
  test::MemoryTransport transport(processes);
  std::vector<Finished> finished(static_cast<std::size_t>(processes));
  test::on_each_process(transport, processes, [&](int process) {
    Agreement agreement({{process, processes}, &transport.end(process)});
    std::ostringstream out, err;
    Finished& own = finished[static_cast<std::size_t>(process)];
    own.status = app::run_program(process == 0 || others.empty() ? arguments : others, {out, err, -1, -1, &agreement});
    own.out = out.str();
    own.err = err.str();
  });
  return finished;
}

}  // namespace

TEST_CASE("what process 0 refuses of a sweep is told once, and ends the others", "[app][placements]") {
  const auto check_refused = [](const Arguments& arguments, int status, const std::string& message) {
    const std::vector<Finished> all = call_in_processes(2, arguments);
    CHECK(contains(all[0].err, message));
    for (const Finished& each : all) CHECK(each.status == status);
    CHECK((all[1].out + all[1].err).empty());
  };
  check_refused({"sweep", "run", "none.yaml"}, 2, "none.yaml: error: there is no such file\n");
  check_refused({"sweep", "run", "s.yaml", "--resume", "--overwrite"}, 2, "error: --overwrite and --resume were both");
  check_refused({"sweep", "show", "nowhere"}, 2, "error: 'nowhere' is no folder of a sweep\n");
}

TEST_CASE("a dry run of a sweep in processes is shown once", "[app][placements]") {
  const TemporaryFolder folder;
  folder.write("s.yaml", "base: " + std::filesystem::absolute(linear).string() +
                             "\nset: {train.eval_every: 1 epoch, data.validation: 0.2}\n"
                             "parameters: {optimizer.learning_rate: {choice: [0.01, 0.02]}}\n");
  const std::vector<Finished> all = call_in_processes(2, {"sweep", "run", folder / "s.yaml", "--dry-run", "--json"});
  for (const Finished& each : all) CHECK(each.status == 0);
  CHECK(json::parse(all[0].out)["trials"].size() == 2);
  CHECK(all[1].out.empty());
}

TEST_CASE("validate says how the devices divide over processes, and which numbers would", "[app][placements]") {
  const std::string config = linear;
  const std::string alone = call({"validate", config, "--devices", "8"}).out;
  CHECK(contains(alone,
                 "\nprocesses: 1; 2, 4 or 8 would each have as many devices, with a block each "
                 "(mesh.blocks)\n"));
  const std::string blocks = call({"validate", config, "--devices", "8", "--set", "mesh.blocks=4"}).out;
  CHECK(contains(blocks, "\nprocesses: 1; 2 or 4 would divide the 4 blocks alike\n"));
  const std::string uneven =
      call_in_processes(3, {"validate", config, "--devices", "8", "--set", "mesh.blocks=4"}).front().out;
  CHECK(contains(uneven,
                 "\nprocesses: 3 (2, 2 and 4 devices, so some have more work); 1, 2 or 4 would divide the 4 "
                 "blocks alike\n  process 0 sends "));
  const std::vector<Finished> two = call_in_processes(2, {"validate", config, "--devices", "8", "--json"});
  const json document = json::parse(two.front().out);
  CHECK(document["processes"] == 2);
  CHECK(document["blocks"] == 2);
  CHECK(document["devices_of_processes"] == json::parse(R"([{"first": 0, "count": 4}, {"first": 4, "count": 4}])"));
  CHECK(document["processes_that_divide"] == json{1, 2});
  CHECK(document["sent_bytes_of_process"].get<std::int64_t>() > 0);
  CHECK(two.back().out.empty());
}

TEST_CASE("explain shows the plan of a process", "[app][placements]") {
  const std::vector<std::string> kernels{"explain", linear, "--kernels"}, memory{"explain", linear, "--memory"};
  CHECK(!contains(call(kernels).out, "messages between processes"));
  const std::vector<Finished> two = call_in_processes(2, kernels);
  CHECK(contains(two.front().out, "messages between processes"));
  CHECK(two.back().out.empty());
  CHECK(call_in_processes(2, memory).front().out != call(memory).out);
  std::vector<std::string> measured = kernels;
  measured.push_back("--measure");
  for (const Finished& each : call_in_processes(2, measured)) CHECK(each.status == 2);
}

TEST_CASE("validate says how members divide over processes, and which numbers would divide them",
          "[app][placements][members]") {
  const Arguments validate = {
      "validate", linear,
      "--set",    "mesh.axes=[{trials: 4}, {batch: 8}]",
      "--set",    "ensemble={axis: trials, vary: {optimizer.learning_rate: [0.1, 0.05, 0.02, 0.01]}}"};
  const auto with = [&](const Arguments& more) {
    Arguments all = validate;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  CHECK(contains(call(validate).out,
                 "\nprocesses: 1; 2, 4, 8, 16 or 32 would divide the 4 members and their devices alike, with a block "
                 "for each process of a member (mesh.blocks)\n"));
  const std::string blocks = call_in_processes(4, with({"--set", "mesh.blocks=2"})).front().out;
  CHECK(contains(blocks,
                 "\nprocesses: 4 (1 member each, and of these 8 devices each); 1, 2 or 8 would divide the 4 members "
                 "and their 2 blocks alike\n  process 0 sends 0 B to the others in a step\n"));
  const json document = json::parse(call_in_processes(8, with({"--json"})).front().out);
  CHECK(document["blocks"] == 2);
  CHECK(document["members_of_processes"][5] == json::parse(R"({"first": 2, "count": 1})"));
  CHECK(document["devices_of_processes"][5] == json::parse(R"({"first": 4, "count": 4})"));
  CHECK(document["processes_that_divide"] == json{1, 2, 4, 8});
  const Finished refused = call_in_processes(8, with({"--set", "mesh.blocks=1"})).front();
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, "the 2 processes of each member need a block each, and there is one block\n"));
  CHECK(contains(refused.err, "help: 2, 4 or 8 would do\n"));
  const Finished uneven = call_in_processes(6, with({})).front();
  CHECK(contains(uneven.err, "the 3 processes of each member do not divide axis 'batch' (8 devices): 8 = 3 × 2 + 2\n"));
  CHECK(contains(uneven.err, "help: 4 or 8 would do as mesh.blocks, or another number of processes\n"));
  CHECK_FALSE(contains(uneven.err, "blocks 3"));
}

TEST_CASE("devices lists the processes of a launcher", "[app][placements]") {
  CHECK(contains(call({"devices"}).out, "  processes             1: no launcher has started others\n"));
  const std::string text = call_in_processes(2, {"devices"}).front().out;
  CHECK(contains(text, "\n  process 0             "));
  CHECK(contains(text, "\n  process 1             "));
  CHECK(contains(text, " hardware threads\n"));
}

TEST_CASE("validate and devices say how many GPUs each process has", "[app][placements]") {
  const test::WithGpus gpus(test::make_emulated({.devices = 2}));
  CHECK(contains(call_in_processes(2, {"devices"}).front().out, " hardware threads, 2 GPUs\n"));
  const Arguments arguments{"validate", linear, "--devices", "8", "--set", "mesh.backend=cuda"};
  const std::string text = call_in_processes(2, arguments).front().out;
  CHECK(contains(text, "carried by 2 GPUs in each of 2 processes, in 2 blocks (backend cuda)"));
  CHECK(contains(text, "\nprocesses: 2 (4 devices each); 1 would divide the 2 blocks alike\n  each GPU sends "));
  CHECK(contains(text, "\nmemory of each of 2 GPUs:\n"));
  const auto with = [&](const Arguments& more, int processes) {
    Arguments all = arguments;
    all.insert(all.end(), more.begin(), more.end());
    return call_in_processes(processes, all).front();
  };
  // The blocks of GPUs do not depend on the processes.
  CHECK(contains(with({"--set", "mesh.deterministic=true"}, 2).out, "2 processes, in 8 blocks"));
  CHECK(contains(with({"--set", "mesh.blocks=2"}, 4).err, "error: 4 processes need a block each"));
  const Finished uneven = with({"--set", "mesh.deterministic=true"}, 3);
  CHECK(uneven.status == 2);
  CHECK(contains(uneven.err, "error: 8 blocks cannot be divided evenly over 3 processes with GPUs\n"));
  CHECK(contains(uneven.err, "help: start another number of processes\n"));
  const Finished most = with({"--workers", "8"}, 2);
  CHECK(most.status == 2);
  CHECK(
      contains(most.err, "error: the 8 logical devices of the mesh do not divide over 8 GPUs in each of 2 processes"));
  CHECK(contains(most.err, "help: 1, 2 or 4 would do\n"));
}

TEST_CASE("preflight examines the processes, and a config's data in each", "[app][placements]") {
  const Finished alone = call({"preflight", "--json"});
  CHECK(alone.status == 0);
  CHECK(json::parse(alone.out)["links"].empty());
  const std::vector<Finished> two = call_in_processes(2, {"preflight", linear, "--devices", "8"});
  for (const Finished& each : two) CHECK(each.status == 0);
  CHECK(contains(two.front().out, "2 processes on 1 host: pmaptrain "));
  CHECK(contains(two.front().out, "\nthe data is readable and the same in every process\n"));
  const Finished missing = call({"preflight", "none.yaml"});
  CHECK(missing.status == 2);
}

// Only process 0 of three sees the folder `before` in the arguments; the others are told of one that is not there.
std::vector<Finished> call_seen_by_first(const std::string& before, const Arguments& arguments) {
  Arguments others = arguments;
  for (std::string& argument : others) {
    if (const std::size_t at = argument.find(before); at != std::string::npos) {
      argument.replace(at, before.size(), before + "-gone");
    }
  }
  return call_in_processes(3, arguments, others);
}

// scripts/check_processes does so with runs that go on and with predictions: these handle signals, one process at a
// time.
TEST_CASE("only process 0 needs to see the run that is evaluated, or that is finished", "[app][placements]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(call({"run", linear, "--devices", "8", "--set", "mesh.blocks=4", "--set", "train.duration=3 steps",
                "--run-dir", run, "--progress", "none"})
              .status == 0);
  const auto without_time = [](const std::string& text) {
    json document = json::parse(text);
    document.erase("seconds");
    document.erase("run");
    return document;
  };
  const Arguments eval{"eval", run, "--split", "train", "--json"};
  const json expected = without_time(call(eval).out);
  for (const Finished& each : call_seen_by_first(run, eval)) {
    REQUIRE(each.status == 0);
    CHECK(without_time(each.out) == expected);
  }
  const Arguments resume{"run", run, "--resume"};
  const std::vector<Finished> finished = call_seen_by_first(run, resume);
  CHECK(contains(finished.front().err, "'" + run + "' is finished"));
  CHECK(finished.front().out == call(resume).out);
  for (const Finished& each : finished) CHECK(each.status == 0);
}

TEST_CASE("a run that process 0 does not see is one error, with one exit status", "[app][placements]") {
  const TemporaryFolder folder;
  const std::string gone = folder / "run";
  const auto check_refused = [](const std::vector<Finished>& all, int status, const std::string& message) {
    CHECK(contains(all.front().err, message));
    for (const Finished& each : all) CHECK(each.status == status);
    for (std::size_t p = 1; p < all.size(); ++p) CHECK((all[p].out + all[p].err).empty());
  };
  check_refused(call_seen_by_first(gone, {"eval", gone}), 2, "error: '" + gone + "' is not a run folder");
  check_refused(call_seen_by_first(gone, {"predict", gone, "--input", "x.npy", "--output", "-"}), 2,
                "error: '" + gone + "' is not a run folder");
  check_refused(call_seen_by_first(gone, {"run", gone, "--resume"}), 2, "there is no such file");
  check_refused(call_seen_by_first(gone, {"run", linear, "--devices", "8", "--set", "mesh.blocks=4", "--set",
                                          "model.init={from: " + gone + "}", "--run-dir", folder / "next"}),
                3, "cannot open '" + gone + "'");
  const Arguments run{"run",         linear, "--devices", "8",  "--set",      "mesh.blocks=4",
                      "--max-steps", "2",    "--run-dir", gone, "--progress", "none"};
  REQUIRE(call(run).status == 0);
  check_refused(call_seen_by_first(gone, run), 2, "' exists");
  check_refused(call_seen_by_first(gone, {"eval", gone, "--checkpoint", "77"}), 2, "has no checkpoint '77'");
  test::write_text(gone + "/checkpoints/step-00000002/params.safetensors", "damaged");
  check_refused(call_seen_by_first(gone, {"eval", gone}), 3, "is damaged");
  check_refused(call_seen_by_first(gone, {"run", gone, "--resume"}), 3, "is whole");
}

TEST_CASE("eval under a launcher prints once what one process prints", "[app][placements]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(call({"run", linear, "--devices", "8", "--set", "mesh.blocks=4", "--max-steps", "2", "--run-dir", run,
                "--progress", "none"})
              .status == 0);
  const auto without_time = [](const std::string& text) {
    json document = json::parse(text);
    document.erase("seconds");
    return document;
  };
  const std::vector<std::string> arguments{"eval", run, "--split", "train", "--json"};
  const json expected = without_time(call(arguments).out);
  for (const Finished& each : call_in_processes(3, arguments)) {
    CHECK(each.status == 0);
    CHECK(without_time(each.out) == expected);
  }
  const std::vector<Finished> refused = call_in_processes(3, {"eval", run, "--split", "holdout"});
  for (const Finished& each : refused) CHECK(each.status == 2);
  CHECK(contains(refused.front().err, "error: the data has no split 'holdout'"));
}
