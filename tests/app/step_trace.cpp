// --trace: the file that a trace viewer opens, the table at the end, and what is refused.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/app/call.h"
#include "tests/catch.h"

using namespace pmaptrain::tests;
using nlohmann::json;
using pmaptrain::test::contains;
namespace fs = std::filesystem;

namespace {

// A convolution and a layer with a name of its own, on two workers; the pieces of a device are several.
const std::string traced_images = R"(name: images
mesh: {axes: {devices: 4}, workers: 2}
data:
  source: {synthetic_images: {height: 12, width: 12, channels: 3, classes: 3, train: 640, test: 64, noise: 0.1}}
  batch_size: 64
model: {layers: [conv: {features: 8, kernel_size: [3, 3]}, relu, flatten, {name: head, dense: 3}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 12 steps, log_every: 3 steps, eval_every: 10 steps, checkpoint: {every: 4 steps}}
)";

struct Row {
  std::string process, name;
  std::vector<json> spans;  // by their beginnings, the longer of equals first
};

std::vector<std::string> run_arguments(const TemporaryFolder& folder, std::vector<std::string> more) {
  std::vector<std::string> all{
      "run", folder.write("images.yaml", traced_images), "--run-dir", folder / "run", "--overwrite", "--progress",
      "none"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<Row> rows_of(const json& trace) {
  std::map<std::pair<int, int>, Row> rows;
  std::map<int, std::string> processes;
  std::set<int> numbers;
  for (const json& event : trace["traceEvents"]) {
    const std::pair<int, int> id{event["pid"], event.value("tid", 0)};
    if (event["ph"] == "M") {
      if (event["name"] == "process_name") processes[id.first] = event["args"]["name"];
      if (event["name"] != "thread_name") continue;
      rows[id].name = event["args"]["name"];
      // Perfetto joins rows that have one number in several processes, and takes 0 and the process's own for its first.
      CHECK(id.second != 0);
      CHECK(id.second != id.first);
      CHECK(numbers.insert(id.second).second);
      continue;
    }
    REQUIRE(event["ph"] == "X");
    REQUIRE(rows.contains(id));
    rows[id].spans.push_back(event);
  }
  std::vector<Row> found;
  for (auto& [id, row] : rows) {
    row.process = processes.at(id.first);
    std::stable_sort(row.spans.begin(), row.spans.end(), [](const json& a, const json& b) {
      if (a["ts"] != b["ts"]) return a["ts"] < b["ts"];
      return a["dur"] > b["dur"];
    });
    found.push_back(std::move(row));
  }
  return found;
}

std::int64_t nanoseconds(const json& micro) { return std::llround(micro.get<double>() * 1000); }

// Every span is within the one that it begins in.
void check_nesting(const Row& row) {
  std::vector<std::int64_t> ends;
  for (const json& span : row.spans) {
    const std::int64_t begin = nanoseconds(span["ts"]), end = begin + nanoseconds(span["dur"]);
    if (begin < 0 || end < begin) FAIL(span);
    while (!ends.empty() && ends.back() <= begin) ends.pop_back();
    if (!ends.empty() && end > ends.back()) FAIL(row.name << ": " << span);
    ends.push_back(end);
  }
}

std::set<std::string> names_in(const Row& row, const std::string& category = "") {
  std::set<std::string> names;
  for (const json& span : row.spans) {
    if (category.empty() || span["cat"] == category) names.insert(span["name"]);
  }
  return names;
}

}  // namespace

TEST_CASE("a trace has rows for workers, logical devices and the host, whose spans nest", "[app]") {
  const TemporaryFolder folder;
  const Finished finished = call(run_arguments(folder, {"--trace", folder / "t.json", "--trace-steps", "3..5"}));
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  const std::vector<Row> rows = rows_of(json::parse(read_text(folder / "t.json")));
  std::vector<std::string> names;
  for (const Row& row : rows) names.push_back(row.process + ": " + row.name);
  REQUIRE(names == std::vector<std::string>{"workers: worker 0", "workers: worker 1", "logical devices: device 0",
                                            "logical devices: device 1", "logical devices: device 2",
                                            "logical devices: device 3", "host: training loop", "host: loader",
                                            "host: checkpoint writer"});
  std::set<std::string> layers;
  for (const Row& row : rows) {
    check_nesting(row);
    std::set<int> steps;
    for (const json& span : row.spans) steps.insert(span["args"]["step"].get<int>());
    INFO(row.name);
    CHECK(steps == (row.name == "checkpoint writer" ? std::set<int>{4} : std::set<int>{3, 4, 5}));
    if (row.process == "workers") {
      CHECK(names_in(row, "wait") == std::set<std::string>{"wait for other workers"});
      CHECK(names_in(row, "step") == std::set<std::string>{"step 3", "step 4", "step 5"});
      layers.merge(names_in(row));
    }
  }
  for (const char* const layer : {"conv_0", "conv_0.grad", "head", "head.grad", "loss", "adam"}) {
    INFO(layer);
    CHECK(layers.contains(layer));
  }
  CHECK(names_in(rows[6]) == std::set<std::string>{"wait for the batch", "log", "checkpoint"});
  CHECK(names_in(rows[7]) == std::set<std::string>{"fill batch"});
  CHECK(names_in(rows[8]) == std::set<std::string>{"write checkpoint"});
}

TEST_CASE("the tasks and waits of a worker do not exceed its steps, nor instructions their tasks", "[app]") {
  const TemporaryFolder folder;
  REQUIRE(call(run_arguments(folder, {"--trace", folder / "t.json"})).status == 0);
  for (const Row& row : rows_of(json::parse(read_text(folder / "t.json")))) {
    if (row.process != "workers") continue;
    std::int64_t steps = 0, parts = 0, tasks = 0, of_tasks = 0, task_end = 0;
    for (const json& span : row.spans) {
      const std::int64_t took = nanoseconds(span["dur"]);
      const std::string category = span["cat"];
      if (category == "step") {
        steps += took;
      } else if (category == "task") {
        tasks += took;
        parts += took;
        task_end = nanoseconds(span["ts"]) + took;
      } else if (category == "wait") {
        parts += took;
      } else {
        CHECK(nanoseconds(span["ts"]) + took <= task_end);  // each instruction is part of a task
        of_tasks += took;
      }
    }
    CHECK(parts <= steps);
    CHECK(of_tasks <= tasks);
    CHECK(of_tasks > 0);
  }
}

TEST_CASE("a trace changes no bit, and by default has five steps from the second on", "[app]") {
  const TemporaryFolder folder;
  const auto parameters = [&] { return read_text(folder / "run/checkpoints/last/params.safetensors"); };
  REQUIRE(call(run_arguments(folder, {})).status == 0);
  const std::string untraced = parameters();
  for (const char* const backend : {"cpu", "reference"}) {
    const std::string file = folder / (std::string(backend) + ".json");
    const Finished finished =
        call(run_arguments(folder, {"--trace", file, "--set", std::string("mesh.backend=") + backend}));
    INFO(finished.err);
    CHECK(contains(finished.err, "trace of steps 2 to 6 ("));
    if (std::string(backend) == "cpu") CHECK(parameters() == untraced);
    for (const Row& row : rows_of(json::parse(read_text(file)))) check_nesting(row);
  }
  // A resumed run counts from its own first step.
  REQUIRE(call(run_arguments(folder, {"--max-steps", "4"})).status == 0);
  const Finished resumed = call(
      {"run", folder / "images.yaml", "--run-dir", folder / "run", "--resume", "--trace", folder / "resumed.json"});
  CHECK(contains(resumed.err, "trace of steps 6 to 10 ("));
  CHECK(parameters() == untraced);
}

TEST_CASE("the members of an ensemble have logical devices of their own in a trace", "[app]") {
  const TemporaryFolder folder;
  const Finished finished =
      call(run_arguments(folder, {"--trace", folder / "t.json", "--set", "mesh.axes=[{trials: 2}, {devices: 2}]",
                                  "--set", "ensemble={axis: trials, vary: {seed: [0, 1]}}"}));
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  std::vector<std::string> devices;
  for (const Row& row : rows_of(json::parse(read_text(folder / "t.json")))) {
    check_nesting(row);
    if (row.process != "logical devices") continue;
    devices.push_back(row.name);
    CHECK(!row.spans.empty());
  }
  CHECK(devices == std::vector<std::string>{"member 0, device 0", "member 0, device 1", "member 1, device 0",
                                            "member 1, device 1"});
}

TEST_CASE("a trace ends with a table of how busy all were and where the time went", "[app]") {
  const TemporaryFolder folder;
  const Finished finished = call(run_arguments(folder, {"--trace", folder / "t.json", "--json"}));
  REQUIRE(finished.status == 0);
  CHECK(json::parse(finished.out)["status"] == "done");
  for (const char* const words : {"busy", "waits", "other", "worker 0", "worker 1", "logical device 3", "from",
                                  "time a step", "% of work", "conv_0.grad"}) {
    CHECK(contains(finished.err, words));
  }
  CHECK(!contains(call(run_arguments(folder, {"--trace", folder / "u.json", "--quiet"})).err, "busy"));
  CHECK(fs::exists(folder / "u.json"));
}

TEST_CASE("what --trace and --trace-steps do not take is refused before the run", "[app]") {
  const TemporaryFolder folder;
  const auto refused = [&](std::vector<std::string> more) {
    const Finished finished = call(run_arguments(folder, std::move(more)));
    CHECK(finished.status == 2);
    CHECK(!fs::exists(folder / "run"));
    return finished.err;
  };
  const std::string file = folder / "t.json";
  CHECK(contains(refused({"--trace-steps", "1..2"}), "--trace-steps was given without --trace\n"));
  for (const char* const wrong :
       {"3", "0..2", "a..b", "1..", "..2", "1...2", "1..2.5", "-1..2", "99999999999999999999..2"}) {
    INFO(wrong);
    CHECK(contains(refused({"--trace", file, "--trace-steps=" + std::string(wrong)}),
                   "--trace-steps takes two steps A..B, from 1 and both included, not '" + std::string(wrong) + "'"));
  }
  CHECK(contains(refused({"--trace", file, "--trace-steps", "5..3"}), "its last step before its first one"));
  CHECK(contains(refused({"--trace", file, "--trace-steps", "10..13"}),
                 "--trace-steps 10..13 has steps that the run does not take\n  help: the run takes steps 1 to 12"));
  CHECK(contains(refused({"--trace", folder / "none/t.json"}), "there is no folder '" + (folder / "none") + "'"));
  CHECK(contains(refused({"--trace", folder.path().string()}), "is a folder"));
  // A file is replaced only where it is a trace, and that was asked for.
  folder.write("t.json", "{}");
  CHECK(contains(refused({"--trace", file}), "'" + file + "' exists\n"));
  CHECK(contains(refused({"--trace", file}), "help: name another file\n"));
  fs::remove(file);
  REQUIRE(call(run_arguments(folder, {"--trace", file})).status == 0);
  REQUIRE(call(run_arguments(folder, {"--trace", file})).status == 0);
  const Finished again = call({"run", folder / "images.yaml", "--run-dir", folder / "other", "--trace", file});
  CHECK(again.status == 2);
  CHECK(contains(again.err, "name another file, or replace this trace, and the run, with --overwrite"));
}

TEST_CASE("a run that ends within the steps to trace has a trace of those that it took", "[app]") {
  const TemporaryFolder folder;
  const Finished finished =
      call(run_arguments(folder, {"--trace", folder / "t.json", "--set", "train.duration=2 steps"}));
  CHECK(contains(finished.err, "trace of steps 2 to 2 ("));
  const Finished one = call(run_arguments(folder, {"--trace", folder / "one.json", "--set", "train.duration=1 step"}));
  CHECK(contains(one.err, "trace of steps 1 to 1 ("));
}

TEST_CASE("a trace that cannot be written ends the run with status 1 and a complete checkpoint", "[app]") {
  const TemporaryFolder folder;
  const Finished finished = call(run_arguments(folder, {"--trace", "/proc/t.json"}));
  CHECK(finished.status == 1);
  CHECK(contains(finished.err, "'/proc/t.json' cannot be written"));
  CHECK(fs::exists(folder / "run/checkpoints/step-00000012/state.json"));
}
