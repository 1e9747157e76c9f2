// Several labels for each example, from a table to predictions with their names.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

using tests::call;
using tests::Finished;

constexpr const char* rest = R"(
mesh: {axes: {devices: 2}}
model: {layers: [{dense: 8}, relu, {dense: 2}]}
loss: {sigmoid_cross_entropy: {positive_weights: balanced}}
metrics: [accuracy, subset_accuracy, f1, f1: {average: samples}, roc_auc, average_precision: {average: none}]
optimizer: {adam: {}, learning_rate: 0.05}
train: {duration: 12 epochs}
)";

// The labels of an example are red where x is above 3, round where it is even.
std::string table(bool in_one_cell) {
  std::string text = in_one_cell ? "x,odd,labels\n" : "x,odd,red,round\n";
  for (int i = 0; i < 48; ++i) {
    const int x = i % 8;
    const bool red = x > 3, round = x % 2 == 0;
    text += std::to_string(x) + "," + std::to_string(x % 2) + ",";
    text += in_one_cell ? std::string(red ? "red" : "") + (red && round ? "; " : "") + (round ? "round" : "")
                        : std::to_string(red) + "," + std::to_string(round);
    text += "\n";
  }
  return text;
}

struct LabelsRun {
  TemporaryFolder folder;
  std::string dir;

  explicit LabelsRun(const std::string& name, const std::string& source) : dir(folder / name) {
    folder.write("cells.csv", table(true));
    folder.write("columns.csv", table(false));
    folder.write("c.yaml",
                 "data: {batch_size: 8, normalize: auto, validation: 0.25, source: {csv: " + source + "}}" + rest);
    const Finished run = call({"run", folder / "c.yaml", "--run-dir", dir, "-q", "--progress", "none"});
    INFO(run.err);
    REQUIRE(run.status == 0);
  }
  nlohmann::json summary() const { return nlohmann::json::parse(test::read_text(dir + "/summary.json")); }
  std::string predict(std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"predict", dir, "--input", folder / "cells.csv", "--output", "-", "-q"});
    const Finished done = call(options);
    INFO(done.err);
    REQUIRE(done.status == 0);
    return done.out;
  }
};

}  // namespace

TEST_CASE("labels in one cell and in columns of 0 and 1 train the same model, and predictions have their names",
          "[app]") {
  const LabelsRun cells("cells", "{train: cells.csv, target: labels, label_separator: \";\"}");
  const LabelsRun columns("columns", "{train: columns.csv, target: [red, round]}");
  CHECK(cells.summary()["final"] == columns.summary()["final"]);
  CHECK(cells.summary()["classes"] == nlohmann::json{"red", "round"});
  const auto measures = cells.summary()["final"]["validation"];
  for (const char* const name : {"accuracy", "subset_accuracy", "f1", "f1_samples", "roc_auc", "average_precision_0"}) {
    INFO(name);
    REQUIRE(measures.contains(name));
    CHECK(measures[name].get<double>() > 0.5);
  }
  CHECK(cells.predict({"--threshold", "0.000001"}).starts_with("prediction\nred;round\nred;round\n"));
  CHECK(cells.predict({"--threshold", "0.999999"}).starts_with("prediction\n\"\"\n\"\"\n"));
  CHECK(columns.predict().starts_with("prediction_red,prediction_round\n"));
  CHECK(cells.predict({"--as", "probabilities"}).starts_with("probability_red,probability_round\n"));
}

TEST_CASE("eval chooses a threshold on validation, which predict takes from the run", "[app]") {
  const LabelsRun run("run", "{train: cells.csv, target: labels, label_separator: \";\"}");
  const Finished none =
      call({"predict", run.dir, "--input", run.folder / "cells.csv", "--output", "-", "--threshold", "run"});
  CHECK(none.status == 2);
  CHECK(test::contains(none.err, "--threshold run: the run has no threshold of its own"));
  const Finished tuned = call({"eval", run.dir, "--tune-threshold", "f1", "--json", "-q"});
  INFO(tuned.err);
  REQUIRE(tuned.status == 0);
  const auto document = nlohmann::json::parse(tuned.out);
  CHECK(document["split"] == "validation");
  const double threshold = document["threshold"].get<double>();
  CHECK(document["f1_at_threshold"].get<double>() >= document["f1"].get<double>());
  CHECK(run.predict({"--threshold", "run"}) == run.predict({"--threshold", std::to_string(threshold)}));
  // At this threshold, as at the one that the metrics of the config have, eval has the measures that it counts.
  const auto measures = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"eval", run.dir, "--split", "validation", "--json", "-q"});
    const Finished done = call(options);
    INFO(done.err);
    REQUIRE(done.status == 0);
    return nlohmann::json::parse(done.out);
  };
  const auto at_tuned = measures({"--threshold", "run"});
  CHECK(at_tuned["threshold"] == threshold);
  CHECK(at_tuned["f1"].get<double>() == Approx(document["f1_at_threshold"].get<double>()));
  CHECK(at_tuned["roc_auc"] == document["roc_auc"]);
  CHECK(measures({"--threshold", "0.000001"})["accuracy"].get<double>() == Approx(0.5).margin(0.26));
  CHECK(measures({"--threshold", "0.5"})["f1"] == document["f1"]);
  CHECK(nlohmann::json::parse(test::read_text(run.dir + "/threshold.json"))["weights"].is_null());
  for (const char* const split : {"train", "test"}) {
    const Finished refused = call({"eval", run.dir, "--tune-threshold", "f1", "--split", split});
    CHECK(refused.status == 2);
    CHECK(test::contains(refused.err, "a threshold is chosen on validation"));
  }
  const Finished other = call({"eval", run.dir, "--tune-threshold", "f1", "--set", "data.validation=0.5"});
  CHECK(other.status == 2);
  CHECK(test::contains(other.err, "a threshold of the run is chosen on its own validation examples"));
  // The threshold is that of the parameters with which it was chosen.
  CHECK(call({"run", run.folder / "c.yaml", "--run-dir", run.dir, "--resume", "--set", "train.duration=13 epochs", "-q",
              "--progress", "none"})
            .status == 0);
  const Finished later =
      call({"predict", run.dir, "--input", run.folder / "cells.csv", "--output", "-", "--threshold", "run"});
  CHECK(later.status == 2);
  CHECK(later.out.empty());
  CHECK(test::contains(later.err,
                       "was chosen with --checkpoint 48, and these predictions are made with --checkpoint 52\n"));
  CHECK(test::contains(later.err, "help: pmaptrain eval " + run.dir + " --tune-threshold f1 --checkpoint 52 chooses"));
  CHECK(call({"eval", run.dir, "--tune-threshold", "f1", "--checkpoint", "52", "-q"}).status == 0);
  CHECK_FALSE(run.predict({"--threshold", "run"}).empty());
  const std::string stored = test::read_text(run.dir + "/threshold.json");
  run.folder.write("run/threshold.json", R"({"threshold": 0.25, "checkpoint": "step-00000052"})");
  const Finished older =
      call({"predict", run.dir, "--input", run.folder / "cells.csv", "--output", "-", "--threshold", "run"});
  CHECK(older.status == 2);
  CHECK(test::contains(older.err,
                       "threshold.json' is of an older version, which did not store with which weights its "
                       "threshold was chosen\n"));
  CHECK(test::contains(older.err, "help: pmaptrain eval " + run.dir +
                                      " --tune-threshold f1 chooses it anew; "
                                      "--threshold 0.25 takes this one all the same\n"));
  run.folder.write("run/threshold.json", stored);
  CHECK_FALSE(run.predict({"--threshold", "run", "--weights", "raw"}).empty());  // the run averages none
  // Another run in the folder has another threshold.
  CHECK(call({"run", run.folder / "c.yaml", "--run-dir", run.dir, "--overwrite", "-q", "--progress", "none"}).status ==
        0);
  CHECK_FALSE(std::filesystem::exists(run.dir + "/threshold.json"));
  const Finished beyond = call({"predict", run.dir, "--input", "x.csv", "--output", "-", "--threshold", "1.5"});
  CHECK(beyond.status == 2);
  CHECK(test::contains(beyond.err, "expected a probability between 0 and 1, or run"));
}
