// What is told before and after a run that trains badly: inputs far from 0 and 1, and a result that is worth nothing.
#include "core/train/worth.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// The warnings of a run that ask whether its result is worth anything.
std::vector<std::string> told(const setup::Setup& setup, train::SessionOptions options = {}) {
  std::vector<std::string> texts;
  for (const run::Warned& warned : train_setup(setup, std::move(options)).of<run::Warned>()) {
    const bool judges = warned.text.find("is no better than") != std::string::npos ||
                        warned.text.find("the loss never fell") != std::string::npos ||
                        warned.text.find(" is predicted for every example") != std::string::npos;
    if (judges) texts.push_back(warned.text);
  }
  return texts;
}

// Ten examples whose inputs say nothing of their targets.
std::string blind(const std::string& targets, const std::string& rest) {
  return "data: {source: {values: {inputs: [[0], [0], [0], [0], [0], [0], [0], [0], [0], [0]], targets: " + targets +
         "}}, batch_size: 5, normalize: {mean: [0.0], std: [1.0]}}\nmesh: {axes: {devices: 1}}\n" + rest;
}

const std::string numbers_told = "[[1], [2], [3], [4], [5], [6], [7], [8], [9], [20]]";
// A classifier of such examples, seven of which are of the same class.
setup::Setup classifier(
    const TemporaryFolder& folder, std::vector<std::string> set = {},
    const std::string& rows = "0,no\n0,yes\n0,yes\n0,yes\n0,no\n0,yes\n0,yes\n0,no\n0,yes\n0,yes\n") {
  folder.write("t.csv", "x,label\n" + rows);
  return setup_of_text("data: {source: {csv: {train: " + folder / "t.csv" +
                           ", target: label}}, batch_size: 5, normalize: {mean: [0.0], std: [1.0]}}\n"
                           "mesh: {axes: {devices: 1}}\nmodel: {layers: [dense: 2]}\nloss: softmax_cross_entropy\n"
                           "metrics: [accuracy]\noptimizer: {adam: {}, learning_rate: 0.1}\n"
                           "train: {duration: 30 epochs, log_every: never}\n",
                       std::move(set));
}

std::string regression_with(const std::string& loss, const std::string& metrics) {
  return "model: {layers: [dense: 1]}\nloss: " + loss + "\nmetrics: " + metrics +
         "\noptimizer: {adam: {}, learning_rate: 0.1}\ntrain: {duration: 30 epochs, log_every: never}\n";
}

const std::string help = "; another optimizer.learning_rate or a longer train.duration may help";

}  // namespace

TEST_CASE("a classifier that is no better than its most frequent class is told as such", "[train]") {
  const TemporaryFolder folder;
  const auto found = told(classifier(folder));
  REQUIRE(found.size() == 1);
  CHECK(found.front() ==
        "accuracy on train, 0.70000, is no better than that of predicting 'yes' for every example, 0.70000" + help);
  // With weights, frequent classes are meant to be missed, but not every class but one.
  const std::string weighted = "loss={softmax_cross_entropy: {class_weights: [50.0, 1.0]}}";
  CHECK(told(classifier(folder, {weighted})).empty());
  // But no class is meant to be predicted alone, which the confusion matrix shows.
  const auto alone = [&](std::vector<std::string> set) {
    set.insert(set.end(), {"metrics=[accuracy, confusion_matrix]", "data.validation=0.4", "data.batch_size=3"});
    return told(classifier(folder, set));
  };
  CHECK(alone({weighted}) == std::vector{"'no' is predicted for every example of validation" + help});
  CHECK(alone({}) == std::vector{"'yes' is predicted for every example of validation" + help});
  CHECK(
      told(classifier(folder, {"loss={softmax_cross_entropy: {class_weights: balanced}}", "train.duration=150 epochs"},
                      "1,yes\n0,yes\n0,yes\n1,yes\n0,no\n0,yes\n0,yes\n0,no\n1,yes\n0,no\n"))
          .empty());
  // A split of one class is not judged.
  CHECK(told(classifier(folder, {"data.limit={train: 5}"}, "0,yes\n0,yes\n0,yes\n0,yes\n0,yes\n0,no\n")).empty());
  // A part of an epoch, a few steps, and a run that was stopped, say little.
  CHECK(told(classifier(folder, {"train.duration=59 steps"})).empty());
  CHECK(told(classifier(folder, {"train.duration=9 epochs"})).empty());
  train::SessionOptions options;
  options.max_steps = 40;
  CHECK(told(classifier(folder), options).empty());
}

TEST_CASE("a classifier of a rare class is judged by the metric that selects its checkpoint", "[train]") {
  const TemporaryFolder folder;
  // The input ranks the rare class well, but no probability of it is above one half.
  std::string rows;
  for (int i = 0; i < 100; ++i) rows += std::to_string(i < 25) + (i < 10 ? ",yes\n" : ",no\n");
  const auto found = [&](const std::string& selects, const std::string& inputs, std::vector<std::string> set = {}) {
    const std::string best = selects.empty() ? "{}" : "{best: {metric: " + selects + "}}";
    set.insert(set.end(),
               {"metrics=[accuracy" + std::string(selects == "accuracy" ? "]" : ", roc_auc, matthews_corrcoef]"),
                "train.checkpoint=" + best, "data.validation={share: 0.4, stratify: true}", "data.batch_size=10",
                "train.eval_every=1 epoch"});
    return told(classifier(folder, set, inputs));
  };
  for (const char* const selects : {"loss", "roc_auc", ""}) {
    INFO(selects);
    CHECK(found(selects, rows).empty());
  }
  const std::string weigh = "; classes are rare: loss.softmax_cross_entropy.class_weights: balanced weighs them; ";
  auto by_accuracy = found("accuracy", rows);
  REQUIRE(by_accuracy.size() == 1);
  CHECK(by_accuracy.front().starts_with(
      "accuracy on validation, 0.90000, is no better than that of predicting 'no' for every example, 0.90000" + weigh));
  // Inputs that say nothing are found by each of them.
  std::string nothing;
  for (int i = 0; i < 100; ++i) nothing += i < 10 ? "0,yes\n" : "0,no\n";
  CHECK(test::contains(found("roc_auc", nothing).front(), "roc_auc on validation, 0.50000, is no better than "));
  CHECK(test::contains(found("matthews_corrcoef", nothing).front(),
                       "matthews_corrcoef on validation, 0.0000, is no better than "));
  CHECK(test::contains(found("loss", nothing).front(),
                       " is no better than that of predicting the shares of the classes for every example, 0.3250"));
  CHECK(test::contains(found("loss", nothing).front(), weigh));
  CHECK_FALSE(test::contains(
      found("loss", nothing, {"loss={softmax_cross_entropy: {class_weights: balanced}}"}).front(), "rare"));
}

TEST_CASE("a member whose selected checkpoint was not evaluated is judged by its last measures and confusions",
          "[train]") {
  const TemporaryFolder folder;
  const setup::Setup setup =
      classifier(folder, {"metrics=[accuracy, confusion_matrix]", "data.validation=0.4", "data.batch_size=3"});
  run::Ended ended = train_setup(setup).ended;
  ended.members.front().selected = run::Selected{"best", 3, {}};
  const auto none = [](std::int64_t) { return std::optional<train::LossCourse>(); };
  const auto found = train::useless_result_warnings(setup.model, setup.source, setup.batch.steps_per_epoch, ended, none,
                                                    setup.spec().train);
  REQUIRE(found.size() == 1);
  CHECK(found.front().text.starts_with("'yes' is predicted for every example of validation"));
}

TEST_CASE("a run that was best long before its end is not told to go on longer", "[train]") {
  const TemporaryFolder folder;
  const std::string rows = [] {
    std::string text = "x,y\n";
    for (int i = 0; i < 30; ++i) text += std::to_string(i * 31 % 17) + "," + std::to_string(i * 31 % 17 * 3) + "\n";
    return text;
  }();
  folder.write("t.csv", rows);
  const auto found = told(setup_of_text(
      "data: {source: {csv: {train: " + folder / "t.csv" +
      ", target: y}}, batch_size: 4, remainder: drop, validation: "
      "0.3, normalize: auto, normalize_targets: auto}\nmesh: {axes: {devices: 1}}\nmodel: {layers: [{dense: 1}], init: "
      "{values: {dense_0: {kernel: [[-1.0]], bias: [0.0]}}}}\nloss: mean_squared_error\nmetrics: [r2]\noptimizer: "
      "{adam: {}, learning_rate: "
      "1.0e-5}\ntrain: {duration: 60 epochs, eval_every: 1 epoch, log_every: never, checkpoint: {best: {metric: "
      "loss, mode: max}}}\n"));
  REQUIRE(found.size() == 1);
  CHECK(found.front().find("; the best checkpoint, which eval and predict take, is that of step ") !=
        std::string::npos);
  CHECK(found.front().ends_with(": a shorter train.duration, train.early_stopping or a smaller model may help"));
}

TEST_CASE("a regression that is no better than the mean or the median is told as such", "[train]") {
  const auto begin_of = [](const std::string& loss, const std::string& metrics) {
    const auto found = told(setup_of_text(blind(numbers_told, regression_with(loss, metrics))));
    REQUIRE(found.size() == 1);
    CHECK(found.front().ends_with(help));
    return found.front().substr(0, found.front().find(','));
  };
  CHECK(begin_of("mean_squared_error", "[r2]") == "r2 on train");
  CHECK(begin_of("mean_squared_error", "[]") == "mean_squared_error on train");
  CHECK(begin_of("huber", "[]") == "huber on train");
  CHECK(begin_of("log_cosh", "[]") == "log_cosh on train");
  CHECK(begin_of("huber", "[mean_squared_error]") == "mean_squared_error on train");
  CHECK(begin_of("mean_absolute_error", "[]") == "mean_absolute_error on train");
  const auto of_mean = told(setup_of_text(blind(numbers_told, regression_with("mean_squared_error", "[]"))));
  CHECK(of_mean.front().find("is no better than that of predicting their mean for every example, 26.250; ") !=
        std::string::npos);
  // A loss in units of the targets' deviation is compared in these.
  const std::string small = "[[0.01], [0.02], [0.03], [0.04], [0.05], [0.06], [0.07], [0.08], [0.09], [0.2]]";
  const auto normalised =
      told(setup_of_text(blind(small, regression_with("mean_squared_error", "[]")), {"data.normalize_targets=auto"}));
  REQUIRE(normalised.size() == 1);
  CHECK(normalised.front().find("their mean for every example, 1.0000; ") != std::string::npos);
  CHECK(told(setup_of_text(blind("[[3], [3], [3], [3], [3], [3], [3], [3], [3], [3]]",
                                 regression_with("mean_squared_error", "[r2]"))))
            .empty());
}

TEST_CASE("a loss that never fell is told with what helps, whatever the first batch was like", "[train]") {
  for (int seed = 0; seed < 6; ++seed) {
    INFO("seed " << seed);
    const auto found = told(setup_of_text(
        small_images, {"seed=" + std::to_string(seed), "train.duration=8 epochs", "optimizer.learning_rate=1.0e-30"}));
    REQUIRE(found.size() == 1);
    CHECK(found.front().starts_with("the loss never fell: its mean was 1."));
    CHECK(found.front().find(" over the first epoch and 1.") != std::string::npos);
    CHECK(found.front().ends_with(" over the last" + help));
  }
  // Also where no line is written for the end of an epoch.
  const auto unlogged = told(setup_of_text(
      small_images, {"train.duration=8 epochs", "optimizer.learning_rate=1.0e-30", "train.log_every=7 steps"}));
  REQUIRE(unlogged.size() == 1);
  CHECK(unlogged.front().starts_with("the loss never fell: "));
}

TEST_CASE("a perfect fit from the first step on is not told to have a loss that never fell", "[train]") {
  CHECK(told(setup_of_text(
                 "data: {source: {values: {inputs: [[1], [2], [3], [4]], targets: [[2], [4], [6], [8]]}}, batch_size: "
                 "4}\nmesh: {axes: {devices: 1}}\nmodel: {layers: [{dense: 1}], init: {values: {dense_0: {kernel: "
                 "[[2.0]], bias: [0.0]}}}}\nloss: mean_squared_error\noptimizer: {sgd: {}, learning_rate: 0.001}\n"
                 "train: {duration: 30 epochs, log_every: never}\n"))
            .empty());
}

TEST_CASE("members whose results are worth nothing are told together", "[train]") {
  const auto found = told(setup_of_text(
      small_images, {"mesh.axes=[{trials: 3}, {devices: 2}]", "train.duration=8 epochs",
                     "ensemble={axis: trials, vary: {optimizer.learning_rate: [1.0e-30, 0.01, 1.0e-31]}}"}));
  REQUIRE(found.size() == 1);
  CHECK(found.front().starts_with("members 0, 2: the loss never fell; "));
}

TEST_CASE("runs that train well are not told that they are worth nothing", "[train]") {
  for (int seed = 0; seed < 5; ++seed) {
    INFO("seed " << seed);
    const std::string seeded = "seed=" + std::to_string(seed);
    CHECK(told(setup_of_text(small_images, {seeded, "train.duration=8 epochs"})).empty());
    CHECK(told(setup_of_text(small_images, {seeded, "train.duration=8 epochs", "data.validation=0.25",
                                            "loss={softmax_cross_entropy: {label_smoothing: 0.1}}"}))
              .empty());
    // One epoch of small batches, and a batch of everything.
    for (const char* const batch : {"data.batch_size=4", "data.batch_size=all"}) {
      CHECK(told(setup_of_text(
                     "data: {source: {synthetic_linear: {features: 3, examples_per_device: 100, noise: 0.1}}}\n"
                     "mesh: {axes: {devices: 2}}\nmodel: {layers: [dense: 1]}\nloss: mean_squared_error\n"
                     "metrics: [r2]\noptimizer: {adam: {}, learning_rate: 0.05}\ntrain: {duration: 200 steps}\n",
                     {seeded, batch}))
                .empty());
    }
  }
}

TEST_CASE("inputs far from 0 and 1 that nothing normalises are told before training, with their column", "[train]") {
  const TemporaryFolder folder;
  std::string table = "age,city,area,price\n";
  for (int i = 0; i < 20; ++i) {
    table += std::to_string(i % 9) + "," + (i % 3 == 0 ? "Rome" : "Oslo") + "," + std::to_string(100 + 10 * i) + "," +
             std::to_string(i % 5) + "\n";
  }
  folder.write("t.csv", table);
  const std::string text = "data: {source: {csv: {train: " + folder / "t.csv" +
                           ", target: price, categorical: [city]}}, batch_size: 4}\nmesh: {axes: {devices: 2}}\n"
                           "model: {layers: [dense: 1]}\nloss: mean_squared_error\n"
                           "optimizer: {adam: {}, learning_rate: 0.05}\ntrain: {duration: 30 steps}\n";
  const auto warnings = [&](std::vector<std::string> set) {
    std::vector<std::string> found = setup_of_text(text, std::move(set)).warnings;
    std::erase_if(found,
                  [](const std::string& warning) { return warning.find(" has the mean ") == std::string::npos; });
    return found;
  };
  const auto found = warnings({});
  REQUIRE(found.size() == 1);
  CHECK(found.front().starts_with("column 'area' has the mean 195.00 and the standard deviation 57.663, and nothing "));
  CHECK(found.front().ends_with(": such numbers train slowly, or not at all; data.normalize: auto scales them"));
  CHECK(warnings({"data.normalize=auto"}).empty());
  for (const std::string& config : shipped_configs()) {
    INFO(config);
    CHECK(setup_of_config(config).warnings.empty());
  }
}

TEST_CASE("shipped configs, run to their end, are told nothing", "[train]") {
  for (const std::string& config : shipped_configs()) {
    INFO(config);
    std::vector<std::string> set;
    // Fewer and smaller images are enough to learn something.
    if (config == "cnn.yaml") {
      set = {"data.source.synthetic_images={height: 8, width: 8, channels: 3, classes: 10, train: 640, test: 160}",
             "data.batch_size=32", "train.duration=6 epochs"};
    } else if (config == "fashion_mnist.yaml") {
      set = {"data.limit={train: 2000, test: 500}", "data.batch_size=64", "train.duration=2 epochs"};
    } else if (config == "volumes.yaml") {
      set = {"data.source={synthetic_volumes: {depth: 8, height: 8, width: 8, train: 800, test: 100}}"};
    } else if (config == "unet.yaml") {
      set = {"data.source={synthetic_masks: {height: 16, width: 16, train: 400, test: 100}}"};
    }
    const Trained trained = train_setup(setup_of_config(config, set));
    for (const run::Warned& warned : trained.of<run::Warned>()) UNSCOPED_INFO(warned.text);
    CHECK(trained.of<run::Warned>().empty());
  }
}
