// Runs on tables of text: from the file to the checkpoint and back.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/evaluate/evaluator.h"
#include "core/evaluate/predictor.h"
#include "core/run/checkpoint.h"
#include "core/run/records/final_report.h"
#include "core/run/records/records.h"
#include "core/train/resume.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;

// Two classes by a number and a colour, in rows of "x,colour,class,weight".
std::string table(int rows, int first = 0) {
  constexpr const char* colours[] = {"red", "green", "blue"};
  std::string text = "x,colour,class,weight\n";
  for (int i = first; i < first + rows; ++i) {
    const int x = i * 7 % 11 - 5, colour = i % 3;
    text += std::to_string(x) + ".5," + colours[colour] + "," + (x + 3 * colour > 2 ? "yes" : "no") + ",1\n";
  }
  return text;
}

struct Tables {
  TemporaryFolder folder;
  std::string config = R"(
mesh: {axes: {devices: 2}}
data:
  source: {csv: {train: TRAIN, test: TEST, inputs: [x, colour], target: class, categorical: [colour]}}
  batch_size: 16
  normalize: auto
model: {layers: [{dense: 2}]}
loss: softmax_cross_entropy
metrics: [accuracy]
optimizer: {adam: {}, learning_rate: 0.1}
train: {duration: 10 epochs}
)";
  Tables() {
    put("TRAIN", folder.write("train.csv", table(80)));
    put("TEST", folder.write("test.csv", table(32, 80)));
  }
  void put(const std::string& name, const std::string& path) { config.replace(config.find(name), name.size(), path); }
  setup::Setup setup(std::vector<std::string> set = {}) const { return setup_of_text(config, std::move(set)); }
};

// The values of this parameter.
std::vector<double> parameter(const Trained& trained, const std::string& name) {
  return to_doubles(trained.parameters.at(name));
}

// The measures of a split at the end.
run::Measures measures_of(const Trained& trained, const std::string& split) {
  for (const auto& [name, measures] : trained.result().final_measures) {
    if (name == split) return measures;
  }
  FAIL(split);
  return {};
}

void check_near(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < 1e-5 * (1 + std::abs(a[i])));
}

}  // namespace

TEST_CASE("a run on a table saves its encoding, by which eval reads the test split without the training file",
          "[train]") {
  const Tables tables;
  const setup::Setup setup = tables.setup();
  const fs::path run = tables.folder / "run";
  const Trained trained = train_setup_in(run, setup);
  CHECK(run::load_run_state(run / "checkpoints/last").encoding == setup.source.encoding);
  REQUIRE(setup.source.encoding.statistics);
  fs::remove(tables.folder / "train.csv");
  const auto evaluations = evaluate::evaluate_checkpoint(setup.loaded, run, "last", std::nullopt);
  REQUIRE(evaluations.size() == 1);
  CHECK(evaluations.front().split == "test");
  CHECK(evaluations.front().measures == measures_of(trained, "test"));
  CHECK(test::contains(setup.loaded.resolved, "normalize: auto"));
}

TEST_CASE("normalize: auto is normalize with the numbers that were measured", "[train]") {
  const Tables tables;
  const Trained measured = train_setup(tables.setup());
  const auto statistics = tables.setup().source.encoding.statistics;
  const auto list = [](const std::vector<double>& values) {
    std::string text;
    for (const double value : values) text += (text.empty() ? "[" : ", ") + exact(value);
    return text + "]";
  };
  const Trained given = train_setup(
      tables.setup({"data.normalize={mean: " + list(statistics->mean) + ", std: " + list(statistics->std) + "}"}));
  CHECK(measured.same_bits(given));
  CHECK_FALSE(measured.parameters == train_setup(tables.setup({"data.normalize=null"})).parameters);
}

TEST_CASE("a run on other data than it began with is not resumed, and what differs is named", "[train]") {
  const Tables tables;
  const fs::path run = tables.folder / "run";
  train_setup_in(run, tables.setup());
  const run::RunState state = run::load_run_state(run / "checkpoints/last");
  const auto refusal = [&](const std::vector<std::string>& set = {}) {
    return test::refusal([&] { train::check_data_continues(state, tables.setup(set)); }, ExitStatus::data);
  };
  const std::string changed = "--resume needs the data that the run began with, and it has changed: ";
  const std::string help = " | restore the data, or begin another run (--name)";
  CHECK(refusal() == "accepted");
  std::string text = table(80);
  text.replace(text.find("green"), 5, "black");
  tables.folder.write("train.csv", text);
  CHECK(refusal() == changed + "category 'black' is new in column 'colour'" + help);
  text = table(80);
  text.replace(text.find("yes"), 3, "maybe");
  tables.folder.write("train.csv", text);
  CHECK(test::contains(refusal({"model.layers.0.dense.features=3"}), changed + "class 'maybe' is new"));
  text = table(80);
  text.replace(text.find("-5.5"), 4, "-5.6");
  tables.folder.write("train.csv", text);
  CHECK(test::contains(refusal(), changed + "the mean of "));
  tables.folder.write("train.csv", table(80));
  CHECK(refusal() == "accepted");
}

TEST_CASE("an example of weight w counts as w examples do", "[train]") {
  const Tables tables;
  // Rows of weight 2 and 0, or twice and not at all.
  std::string weighted = "x,z,y,w\n", repeated = weighted;
  for (int i = 0; i < 24; ++i) {
    const int weight = i % 5 == 0 ? 2 : i % 7 == 3 ? 0 : 1;
    const std::string row = std::to_string(i % 5) + "," + std::to_string(i % 3) + "," + std::to_string(i % 2);
    weighted += row + "," + std::to_string(weight) + "\n";
    for (int k = 0; k < weight; ++k) repeated += row + ",1\n";
  }
  const std::string first = tables.folder.write("weighted.csv", weighted);
  const std::string second = tables.folder.write("repeated.csv", repeated);
  for (const char* const loss : {"mean_squared_error", "sigmoid_cross_entropy"}) {
    const bool labels = std::string(loss) == "sigmoid_cross_entropy";
    const auto trained = [&](const std::string& file, const std::string& weight) {
      return train_setup(setup_of_text(
          "mesh: {axes: {devices: 2}}\ndata:\n  source: {csv: {train: " + file + ", validation: " + file +
          ", inputs: [x, z], target: y" + weight +
          "}}\n  batch_size: all\n  remainder: mask\n  microbatches: 2\nmodel: {layers: [dense: 1]}\nloss: " + loss +
          "\nmetrics: [" + (labels ? "accuracy, precision, recall" : "r2, mean_absolute_error") +
          "]\noptimizer: {sgd: {}, learning_rate: 0.1}\ntrain: {duration: 20 steps, log_every: 1 step, eval_every: 10 "
          "steps, loss_spike: {factor: 100.0, window: 3 steps}}\n"));
    };
    const Trained a = trained(first, ", weight: w"), b = trained(second, ""), c = trained(first, "");
    for (const char* const name : {"dense_0.kernel", "dense_0.bias"})
      check_near(parameter(a, name), parameter(b, name));
    CHECK_FALSE(a.parameters == c.parameters);
    const auto measures = [](const Trained& of) {
      std::vector<double> all;
      for (const auto& logged : of.of<run::Logged>()) {
        for (const auto& [name, value] : logged.measures) all.push_back(value);
        all.push_back(logged.grad_norm);
      }
      for (const auto& [split, values] : of.result().final_measures) {
        for (const auto& [name, value] : values) all.push_back(value);
      }
      return all;
    };
    CHECK(measures(a).size() > 60);
    check_near(measures(a), measures(b));
    for (const auto& [name, value] : measures_of(a, "validation")) CHECK(name != "weight");
  }
}

TEST_CASE("weights are numbers of at least 0, and not all are 0", "[train]") {
  const Tables tables;
  const auto refusal = [&](const std::string& weight, const std::string& other = "1") {
    const std::string path = tables.folder.write("w.csv", "x,y,w\n1,0,1\n2,1," + weight + "\n3,1," + other + "\n");
    std::string text = test::refusal(
        [&] {
          setup_of_text("data: {source: {csv: {train: " + path +
                        ", target: y, weight: w}}, batch_size: 1}\nmodel: {layers: [dense: 2]}\nloss: "
                        "softmax_cross_entropy\noptimizer: {sgd: {}, learning_rate: 0.1}\ntrain: {duration: 1 step}\n");
        },
        ExitStatus::data);
    return text.substr(0, text.find(" | "));
  };
  CHECK(refusal("0.5") == "accepted");
  const std::string where = "'" + (tables.folder / "w.csv") + "', line 3, column 'w': ";
  CHECK(refusal("-1") == where + "'-1' is no weight: weights are numbers of at least 0");
  CHECK(refusal("heavy") == where + "'heavy' is no weight: weights are numbers of at least 0");
  CHECK(refusal("") == where + "the cell is empty, expected a weight");
}

TEST_CASE("a batch whose weights are all 0 stops the run or is skipped, and is said to be the reason", "[train]") {
  const Tables tables;
  const std::string path = tables.folder.write("w.csv", "x,y,w\n1,0,1\n2,1,0\n3,1,2\n");
  for (const char* const log_every : {"1 step", "3 steps"}) {
    const auto trained = [&](const std::string& action) {
      return train_setup(setup_of_text(
          "mesh: {axes: {devices: 1}}\ndata: {source: {csv: {train: " + path +
          ", target: y, weight: w}}, batch_size: 1, shuffle: false}\nmodel: {layers: [dense: 2]}\nloss: "
          "softmax_cross_entropy\noptimizer: {sgd: {}, learning_rate: 0.1}\ntrain: {duration: 3 steps, log_every: " +
          log_every + ", on_nonfinite: " + action + "}\n"));
    };
    const Trained halted = trained("halt");
    CHECK(halted.ended.exit_status == 5);
    CHECK(halted.of<run::Warned>().back().text ==
          "step 2: the weights of the batch are all 0, so it has no mean; stopped with the parameters after step 1 "
          "(train.on_nonfinite: halt); a larger batch, or on_nonfinite: skip, gets past it");
    const Trained skipped = trained("skip");
    CHECK(skipped.ended.exit_status == 0);
    CHECK(skipped.ended.steps_skipped() == 1);
    CHECK(skipped.of<run::Warned>().back().text ==
          "1 step was skipped: the loss, the gradient or the update was not finite, or the weights of the batch were "
          "all 0 (train.on_nonfinite: skip)");
  }
}

TEST_CASE("labels that begin at 1 are named as such", "[train]") {
  const Tables tables;
  const std::string path = tables.folder.write("l.csv", "x,y\n1,1\n2,2\n3,3\n");
  const auto setup = [&](int outputs) {
    return setup_of_text("data: {source: {csv: {train: " + path +
                         ", target: y}}, batch_size: 3}\nmodel: {layers: [dense: " + std::to_string(outputs) +
                         "]}\nloss: softmax_cross_entropy\noptimizer: {sgd: {}, learning_rate: 0.1}\ntrain: "
                         "{duration: 1 step}\n");
  };
  CHECK(test::refusal([&] { setup(3); }, ExitStatus::data) ==
        "the labels in column 'y' of '" + path +
            "' range from 1 to 3, but the model has 3 outputs: classes 0 to 2 | labels begin at 1: subtract 1 from "
            "them, or end the layers with dense: 4");
  try {
    setup(3);
  } catch (const Error& error) {
    const std::vector<std::string>& notes = error.diagnostics().front().notes;
    REQUIRE(notes.size() == 1);
    CHECK(notes.front().starts_with("the outputs are those of layer 'dense_0', "));
    CHECK(notes.front().ends_with(":2:18"));
  }
  CHECK(setup(4).warnings.front() ==
        "the labels in column 'y' of '" + path +
            "' begin at 1, so class 0 never occurs; if they are counted from 1, subtract 1 and leave out one output");
}

TEST_CASE("classes that no label is are named, with how many outputs nothing trains", "[train]") {
  const Tables tables;
  const auto warnings = [&](const std::string& labels, const std::string& more = "",
                            const std::string& loss = "softmax_cross_entropy") {
    std::string rows = "x,y\n";
    for (const char label : labels) rows += std::string("1,") + label + "\n";
    const std::string path = tables.folder.write("gap" + labels + ".csv", rows);
    std::string all;
    for (const std::string& warning :
         setup_of_text("data: {source: {csv: {train: " + path + ", target: y}}, batch_size: 2" + more +
                       "}\nmodel: {layers: [dense: 8]}\nloss: " + loss +
                       "\noptimizer: {sgd: {}, learning_rate: 0.1}\ntrain: {duration: 1 step}\n")
             .warnings) {
      if (warning.starts_with("no label")) all += warning.substr(warning.find("' is ") + 2);
    }
    return all;
  };
  CHECK(warnings("0137").starts_with("is 2, 4, 5, 6, so nothing trains 4 of the 8 outputs; add examples of these"));
  CHECK(warnings("00133567") ==
        "is 2, 4, so nothing trains 2 of the 8 outputs; add examples of these classes, or "
        "number those that occur from 0 without gaps");
  CHECK(warnings("0123567") ==
        "is 4, so nothing trains 1 of the 8 outputs; add examples of this class, or number "
        "those that occur from 0 without gaps");
  CHECK(warnings("234567").starts_with("is 0, 1, so nothing trains 2 of"));
  CHECK(warnings("01234567").empty());
  // A class that is left out by intention.
  CHECK(warnings("0137", ", limit: {train: 2 examples}").empty());
  CHECK(warnings("1234567", "", "{softmax_cross_entropy: {ignore_label: 0}}").empty());
}

TEST_CASE("a network learns the species of the Palmer penguins from the published table", "[train]") {
  const char* const penguins = "third_party/penguins/penguins.csv";
  if (!fs::exists(penguins)) {
    WARN("scripts/bootstrap --dev fetches the table of penguins");
    return;
  }
  const setup::Setup setup = setup_of_text(R"(
mesh: {axes: {devices: 4}}
data:
  source: {csv: {train: third_party/penguins/penguins.csv, target: species, categorical: [island, sex], missing: mean}}
  batch_size: 32
  validation: 0.2
  normalize: auto
model: {layers: [{dense: 16}, relu, {dense: 3}]}
loss: softmax_cross_entropy
metrics: [accuracy]
optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 20 epochs}
)");
  CHECK(setup.source.description ==
        "csv: 275 train, 69 validation examples of f32[11] in 3 classes (Adelie, Chinstrap, Gentoo); there is no test "
        "split");
  const Trained trained = train_setup(setup);
  for (const auto& [name, value] : measures_of(trained, "validation")) {
    if (name == "accuracy") CHECK(value >= 0.95);
  }
}

TEST_CASE("measured numbers that are named as categories are warned about", "[train]") {
  Tables tables;
  const auto warning = [&](int numbers, const std::string& fraction) {
    std::string text = "x,colour,class,weight\n";
    for (int i = 0; i < 80; ++i) {
      text += "1," + std::to_string(i % numbers) + fraction + "," + (i % 2 == 0 ? "yes" : "no") + ",1\n";
    }
    tables.folder.write("train.csv", text);
    tables.folder.write("test.csv", text);
    std::string found;
    for (const std::string& told : tables.setup().warnings) {
      if (told.starts_with("column 'colour'")) found = told.substr(told.find(" is "));
    }
    return found;
  };
  CHECK(warning(21, ".5") ==
        " is categorical and has 21 different numbers, each of which becomes an input: without its name in categorical "
        "it is one number");
  CHECK(warning(20, ".5").empty());
  CHECK(warning(21, "").empty());   // postal codes
  CHECK(warning(21, "a").empty());  // names
}

TEST_CASE("metrics of rows are those of what predict writes, on any devices and in batches that do not divide",
          "[train]") {
  const Tables tables;
  const std::string metrics =
      "metrics=[accuracy, roc_auc, roc_auc: {average: none}, confusion_matrix, recall: {average: none}]";
  const setup::Setup setup = tables.setup({metrics, "data.batch_size=24", "mesh.axes={devices: 4}"});
  const fs::path run = tables.folder / "run";
  const Trained trained = train_setup_in(run, setup);

  evaluate::PredictionRequest request;
  request.input.path = tables.folder / "test.csv";
  request.kind = model::PredictionKind::probabilities;
  evaluate::Predictor predictor(setup.loaded, run, request);
  std::vector<float> chances;  // of "no", which row 0 of the table is, and "yes"
  predictor.run([&](std::int64_t, std::span<const std::byte> rows) {
    const std::size_t begin = chances.size();
    chances.resize(begin + rows.size() / sizeof(float));
    std::memcpy(chances.data() + begin, rows.data(), rows.size());
  });
  const std::vector<std::string> classes = setup.source.encoding.classes;
  std::vector<std::size_t> actual;
  const std::string text = table(32, 80);
  for (std::size_t at = text.find('\n') + 1; at < text.size(); at = text.find('\n', at) + 1) {
    actual.push_back(test::contains(text.substr(at, text.find('\n', at) - at), classes[1]) ? 1 : 0);
  }
  REQUIRE(chances.size() == 2 * actual.size());
  double ordered = 0, pairs = 0;
  std::vector<std::vector<double>> matrix(2, std::vector<double>(2));
  for (std::size_t i = 0; i < actual.size(); ++i) {
    matrix[actual[i]][chances[2 * i + 1] > chances[2 * i] ? 1 : 0] += 1;
    for (std::size_t j = 0; j < actual.size(); ++j) {
      if (actual[i] != 1 || actual[j] != 0) continue;
      const float a = chances[2 * i + 1], b = chances[2 * j + 1];
      ordered += a > b ? 1 : a == b ? 0.5 : 0;
      ++pairs;
    }
  }
  const run::Measures measures = measures_of(trained, "test");
  const std::map<std::string, double> found(measures.begin(), measures.end());
  CHECK(found.at("roc_auc") == Approx(ordered / pairs));
  CHECK(found.at("roc_auc_0") == found.at("roc_auc_1"));
  CHECK(trained.result().confusions.at("test") == matrix);
  CHECK(measures_of(trained, "train").size() == 4);  // loss, accuracy, recall_0, recall_1

  const auto evaluated = evaluate::evaluate_checkpoint(setup.loaded, run, "last", std::nullopt).front();
  CHECK(evaluated.measures == measures);
  CHECK(evaluated.confusion == matrix);
  CHECK(run::load_run_state(run / "checkpoints/last").members.front().confusions.at("test") == matrix);

  // What a person and a script see of them.
  const std::string report = run::final_report(trained.ended);
  CHECK(test::contains(report, "recall_0 (" + classes[0] + ")"));
  CHECK(test::contains(report, "test: true \\ predicted"));
  const auto read_back = run::parse_summary(run::summary_json(trained.ended, "1"));
  REQUIRE(read_back);
  CHECK(run::final_report(*read_back) == report);
  CHECK(test::contains(run::summary_json(trained.ended, "1"), "\"confusion_matrix\": ["));
}
