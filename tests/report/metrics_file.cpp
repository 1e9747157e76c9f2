// metrics.jsonl, read back.
#include "core/report/runs/metrics_file.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/report/runs/listing.h"
#include "core/report/runs/run_record.h"
#include "core/run/checkpoint.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using report::Metrics;
using report::Series;
using test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

const std::string lines =
    R"({"event":"step","step":1,"epoch":1,"loss":2.5,"accuracy":0.1,"learning_rate":0.1,"grad_norm":1.0,"examples_per_second":100.0,"seconds":1.0}
{"event":"step","step":10,"epoch":1,"loss":0.1,"accuracy":0.5,"learning_rate":0.1,"grad_norm":1.0,"examples_per_second":100.0,"seconds":2.0}
{"event":"epoch","step":10,"epoch":1,"loss":1.25,"accuracy":0.4,"examples":160,"seconds":1.5}
{"event":"change","step":10,"epoch":1,"key":"optimizer.learning_rate","before":0.1,"value":0.01}
{"event":"eval","step":5,"epoch":1,"split":"validation","loss":0.7,"accuracy":0.6,"examples":21,"seconds":0.1}
{"event":"eval","step":10,"epoch":1,"split":"validation","loss":null,"accuracy":0.8,"examples":21,"seconds":0.1,"finite":false}
)";

std::string line_error(const std::string& text) {
  const TemporaryFolder folder;
  const std::string file = folder.write("metrics.jsonl", text);
  try {
    report::read_metrics(file);
  } catch (const Error& error) {
    CHECK(error.status() == ExitStatus::data);
    std::string what = error.what();
    return what.replace(what.find(file), file.size(), "FILE");
  }
  return "accepted";
}

}  // namespace

TEST_CASE("the lines of metrics.jsonl are read as series, whose numbers are those of the lines", "[report]") {
  const TemporaryFolder folder;
  // The last line is not whole: the run goes on.
  const Metrics metrics = report::read_metrics(folder.write("metrics.jsonl", lines + R"({"event":"step","st)"));
  CHECK(metrics.series.size() == 5 + 2 + 2);
  const Series& loss = *metrics.find("step", "train", "loss");
  CHECK(loss.steps == std::vector<std::int64_t>{1, 10});
  CHECK(loss.values == std::vector<double>{2.5, 0.1});
  CHECK(loss.seconds == std::vector<double>{1, 2});
  CHECK(!loss.member);
  CHECK(metrics.find("epoch", "train", "accuracy")->values == std::vector<double>{0.4});
  const Series& evaluated = *metrics.find("eval", "validation", "loss");
  CHECK(evaluated.values.front() == 0.7);
  CHECK(std::isnan(evaluated.values.back()));
  CHECK(metrics.find("eval", "test", "loss") == nullptr);
  REQUIRE(metrics.changes.size() == 1);
  CHECK(metrics.changes.front().key == "optimizer.learning_rate");
  CHECK(metrics.changes.front().value == "0.01");
}

TEST_CASE("evaluations have the times between the logged steps around them", "[report]") {
  const TemporaryFolder folder;
  const Metrics metrics = report::read_metrics(folder.write("metrics.jsonl", lines));
  const Series& evaluated = *metrics.find("eval", "validation", "accuracy");
  CHECK(evaluated.seconds.front() == 1 + 4.0 / 9);
  CHECK(evaluated.seconds.back() == 2);
}

TEST_CASE("members of an ensemble have series of their own", "[report]") {
  const TemporaryFolder folder;
  const Metrics metrics = report::read_metrics(folder.write(
      "metrics.jsonl", R"({"event":"epoch","step":4,"epoch":1,"member":0,"loss":2.0,"examples":8,"seconds":1.0}
{"event":"epoch","step":4,"epoch":1,"member":1,"loss":1.0,"examples":8,"seconds":1.0}
)"));
  CHECK(metrics.series.size() == 2);
  CHECK(metrics.find("epoch", "train", "loss", 1)->values == std::vector<double>{1});
  const auto best = report::best_value(metrics, "loss", false);
  REQUIRE(best);
  CHECK(best->value == 1);
  CHECK(best->member == 1);
  CHECK(best->is_of_training);
}

TEST_CASE("the best value is that of validation before test, and never one that is no number", "[report]") {
  const TemporaryFolder folder;
  const Metrics metrics = report::read_metrics(
      folder.write("metrics.jsonl", lines + R"({"event":"eval","step":10,"epoch":1,"split":"test","loss":0.1})"
                                            "\n"));
  const auto loss = report::best_value(metrics, "loss", false);
  REQUIRE(loss);
  CHECK(loss->split == "validation");
  CHECK(loss->value == 0.7);
  CHECK(loss->step == 5);
  CHECK(report::best_value(metrics, "accuracy", true)->value == 0.8);
  CHECK(!report::best_value(metrics, "r2", true));
}

TEST_CASE("of equal values the best is that with the lower loss, as a run selects", "[report]") {
  const TemporaryFolder folder;
  const auto line = [](int step, double loss, const char* accuracy) {
    return fmt::format(
        "{{\"event\":\"eval\",\"step\":{},\"epoch\":1,\"split\":\"validation\",\"loss\":{},\"accuracy\":{}}}\n", step,
        loss, accuracy);
  };
  const Metrics metrics = report::read_metrics(folder.write(
      "metrics.jsonl", line(1, 0.5, "0.9") + line(2, 0.4, "0.9") + line(3, 0.6, "0.9") + line(4, 0.1, "0.8")));
  CHECK(report::best_value(metrics, "accuracy", true)->step == 2);
  CHECK(report::best_value(metrics, "loss", false)->step == 4);
}

TEST_CASE("the best of a run is what the state of its last checkpoint has, whatever a rule would choose", "[report]") {
  const TemporaryFolder root;
  const fs::path run = root / "run", file = run / "checkpoints/last/state.json";
  testing::train_setup_in(
      run, testing::setup_of_text(testing::small_images, {"train.checkpoint={best: {metric: accuracy}}",
                                                          "train.eval_every=1 step", "train.duration=3 steps"}));
  run::RunState state = run::load_run_state(file.parent_path());
  // As an older version, or --resume with another train.checkpoint.best, has left it.
  state.members.front().best = run::Best{2, "loss", 7.5, 7.5};
  state.best_mode = "min";
  std::ofstream(file) << run::to_json(state);
  const report::RunRecord record = report::read_run(run);
  REQUIRE(record.best);
  CHECK(record.best->measure == "loss");
  CHECK(record.best->step == 2);
  CHECK(record.best->value == 7.5);
  CHECK(record.best->split == "test");
  CHECK_FALSE(record.best->larger_is_better);
  const auto listed = report::list_runs(root.path(), "");
  REQUIRE(listed.size() == 1);
  CHECK(listed.front().best->step == 2);
  // Without a whole checkpoint it is the best of the evaluations.
  fs::remove(file);
  const auto by_metrics = report::read_run(run).best;
  REQUIRE(by_metrics);
  CHECK(by_metrics->measure == "accuracy");
}

TEST_CASE("a damaged metrics.jsonl is an error that names the line", "[report]") {
  CHECK(line_error(lines + "x\n") ==
        "FILE:7: error: this is no line of metrics.jsonl: it is no JSON object\n"
        "  help: the file was damaged or edited; without this line it can be read\n");
  CHECK(line_error("[1]\n").starts_with("FILE:1: error: this is no line of metrics.jsonl: it is no JSON object"));
  for (const char* const line : {R"({"step":1})", R"({"event":"step","step":1,"loss":"x","seconds":1})",
                                 R"({"event":"step","step":1,"loss":1})", R"({"event":"eval","step":1,"loss":1})"}) {
    CHECK(line_error(std::string(line) + "\n")
              .starts_with("FILE:1: error: this is no line of metrics.jsonl: it has no event and step, or a measure "
                           "that is no number"));
  }
  CHECK(line_error(R"({"event":"later","step":1,"what":"x"})"
                   "\n") == "accepted");
  CHECK(line_error("") == "accepted");
  CHECK(
      test::refusal([] { report::read_metrics("runs/none/metrics.jsonl"); }, ExitStatus::data) ==
      "there is no 'runs/none/metrics.jsonl' | the file was moved or removed, or the run ended before its first line");
}
