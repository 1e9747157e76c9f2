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
