// Commands under a launcher: what all processes do together, and what is told once.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/commands/commands.h"
#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/runtime/placements.h"

using namespace pmaptrain;
using nlohmann::json;
using pmaptrain::tests::call;
using pmaptrain::tests::contains;
using pmaptrain::tests::Finished;
using pmaptrain::tests::linear;
using pmaptrain::tests::TemporaryFolder;

namespace {

// What each process gives of a command that a launcher starts in several.
std::vector<Finished> call_in_processes(int processes, const std::vector<std::string>& arguments) {
  test::MemoryTransport transport(processes);
  std::vector<Finished> finished(static_cast<std::size_t>(processes));
  test::on_each_process(transport, processes, [&](int process) {
    Agreement agreement({{process, processes}, &transport.end(process)});
    std::ostringstream out, err;
    Finished& own = finished[static_cast<std::size_t>(process)];
    own.status = app::run_program(arguments, {out, err, -1, -1, &agreement});
    own.out = out.str();
    own.err = err.str();
  });
  return finished;
}

}  // namespace

TEST_CASE("sweep run under a launcher is refused once, with the way to run it", "[app][placements]") {
  const std::vector<Finished> all = call_in_processes(3, {"sweep", "run", "sweep.yaml"});
  CHECK(all[0].err ==
        "error: sweep run works in one process, and a launcher has started 3\n  help: start it without mpirun or srun: "
        "each trial is a process of its own, as many at once as max_concurrent in the sweep file says\n");
  for (const Finished& each : all) CHECK(each.status == 2);
  CHECK(all[1].err.empty());
  CHECK(all[2].err.empty());
}

TEST_CASE("validate says how the devices divide over processes, and which numbers would", "[app][placements]") {
  const std::string config = linear;
  const std::string alone = call({"validate", config, "--devices", "8"}).out;
  CHECK(contains(alone,
                 "\nprocesses: 1; 1, 2, 4 or 8 would each have as many devices, with a block each "
                 "(mesh.blocks)\n"));
  const std::string blocks = call({"validate", config, "--devices", "8", "--set", "mesh.blocks=4"}).out;
  CHECK(contains(blocks, "\nprocesses: 1; 1, 2 or 4 would divide the 4 blocks alike\n"));
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

TEST_CASE("devices lists the processes of a launcher", "[app][placements]") {
  CHECK(contains(call({"devices"}).out, "  processes             1: no launcher has started others\n"));
  const std::string text = call_in_processes(2, {"devices"}).front().out;
  CHECK(contains(text, "\n  process 0             "));
  CHECK(contains(text, "\n  process 1             "));
  CHECK(contains(text, " hardware threads\n"));
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
