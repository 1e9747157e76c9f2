// on_error: skip over the life of a run: the rows that it began without stay out of it.
#include <string>

#include "tests/app/call.h"
#include "tests/catch.h"

using namespace pmaptrain;
using namespace pmaptrain::tests;

namespace {

std::string loss_of(const std::string& json) {
  const std::size_t at = json.find("\"loss\"");
  REQUIRE(at != std::string::npos);
  return json.substr(at, json.find(',', at) - at);
}

}  // namespace

TEST_CASE("a run goes on to the same bits when a row that it left out was repaired", "[app]") {
  const TemporaryFolder folder;
  const auto write_table = [&](bool is_broken) {
    std::string table = "x,y\n";
    for (int i = 0; i < 64; ++i) {
      table += (i == 9 && is_broken ? "oops" : std::to_string(i % 7)) + "," + std::to_string(i % 5) + ".5\n";
    }
    folder.write("t.csv", table);
  };
  const std::string config = folder.write(
      "c.yaml",
      "mesh: {axes: {devices: 2}}\n"
      "data: {source: {csv: {train: t.csv, target: y, on_error: skip}}, batch_size: 4, remainder: drop, validation: "
      "0.1}\nmodel: {layers: [dense: 1]}\nloss: mean_squared_error\noptimizer: {adam: {}, learning_rate: 0.05}\n"
      "train: {duration: 40 steps}\n");
  const auto run = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.begin(), {"run", config, "--run-dir", folder / name, "--progress", "none"});
    const Finished done = call(more);
    INFO(done.err);
    CHECK(done.status == 0);
    return test::read_text(folder / (name + "/checkpoints/last/params.safetensors"));
  };
  write_table(true);
  const std::string whole = run("whole", {});
  run("stopped", {"--max-steps", "15"});
  write_table(false);
  CHECK(run("stopped", {"--resume"}) == whole);
  // And is evaluated on the examples of the run, unless the rows are to come from elsewhere.
  const auto evaluated = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"eval", folder / "whole", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return call(arguments).out;
  };
  const std::string repaired = evaluated({});
  CHECK(contains(call({"eval", folder / "whole"}).err,
                 "left out again, as by the run before; the first, because it was: "));
  const std::string here = "data.source.csv.train=" + folder / "t.csv";
  CHECK(contains(call({"eval", folder / "whole", "--set", here}).out, "(6 examples"));
  write_table(true);
  CHECK(loss_of(evaluated({})) == loss_of(repaired));
  write_table(false);
  // A row that could be read before has no part in that.
  std::string other = test::read_text(folder / "t.csv");
  other.replace(other.find("3,"), 1, "?");
  folder.write("t.csv", other);
  const Finished refused = call({"run", config, "--run-dir", folder / "stopped", "--resume"});
  CHECK(refused.status != 0);
  CHECK(contains(refused.err, "line 5, column 'x': '?' is no"));
  // A run without one that meets one.
  write_table(false);
  run("clean", {"--max-steps", "15"});
  write_table(true);
  const Finished broken = call({"run", config, "--run-dir", folder / "clean", "--resume"});
  CHECK(broken.status == 3);
  CHECK(contains(broken.err, "--resume needs the data that the run began with, and it has changed: '"));
  CHECK(contains(broken.err, "line 11, column 'x': 'oops' is no"));
}
