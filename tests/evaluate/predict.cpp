// Predictions of runs: what they are, and that evaluation computes the same.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/base/error.h"
#include "core/data/arrays/array.h"
#include "core/evaluate/prediction_file.h"
#include "core/evaluate/predictor.h"
#include "core/run/checkpoint.h"
#include "core/run/files/npy.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using model::PredictionKind;

namespace {

namespace fs = std::filesystem;

// 50 examples of 3 numbers in 3 classes, on 4 devices in batches of 16.
struct Arrays {
  TemporaryFolder folder;
  std::vector<float> inputs;
  std::vector<std::int64_t> labels;
  std::string config = R"(
mesh: {axes: {devices: 4}}
data:
  source: {idx: {train: [TRAIN, LABELS], test: [TEST, LABELS2]}}
  batch_size: 16
model: {layers: [{dense: 5}, relu, {dense: 3}]}
loss: softmax_cross_entropy
metrics: [accuracy]
optimizer: {adam: {}, learning_rate: 0.05}
train: {duration: 3 epochs}
)";

  Arrays() {
    for (int i = 0; i < 50; ++i) {
      for (int j = 0; j < 3; ++j) inputs.push_back(static_cast<float>((i * 7 + j * j * 5) % 13) / 6 - 1);
      labels.push_back(i * 7 % 13 / 5);
    }
    put("TRAIN", write("x.idx", inputs));
    put("LABELS", folder.write("y.idx", label_file()));
    put("TEST", write("x_test.idx", inputs));
    put("LABELS2", folder.write("y_test.idx", label_file()));
  }
  std::string label_file() const {
    std::string bytes;
    for (const std::int64_t label : labels) bytes += static_cast<char>(label);
    return idx(8, {50}, bytes);
  }
  std::string write(const std::string& name, const std::vector<float>& values) const {
    std::string bytes;
    for (const float value : values) {
      const std::string native = raw(std::vector{value});
      bytes.append(native.rbegin(), native.rend());
    }
    return folder.write(name, idx(13, {values.size() / 3, 3}, bytes));
  }
  void put(const std::string& name, const std::string& path) { config.replace(config.find(name), name.size(), path); }
};

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

struct Predicted {
  evaluate::Predictions predictions;
  std::vector<std::byte> bytes;
  std::vector<std::int64_t> firsts;  // of the parts
  template <class T>
  std::vector<T> as() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

Predicted predict(const spec::Loaded& loaded, const fs::path& run, const std::string& input,
                  std::optional<PredictionKind> kind = std::nullopt, run::MemberNumber member = std::nullopt) {
  evaluate::PredictionRequest request;
  request.input.path = input;
  request.kind = kind;
  request.member = member;
  evaluate::Predictor predictor(loaded, run, request);
  Predicted predicted{predictor.predictions(), {}, {}};
  predictor.run([&](std::int64_t first, std::span<const std::byte> rows) {
    predicted.firsts.push_back(first);
    predicted.bytes.insert(predicted.bytes.end(), rows.begin(), rows.end());
  });
  return predicted;
}

double accuracy_of(const std::vector<std::int32_t>& classes, const std::vector<std::int64_t>& labels) {
  double right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) right += static_cast<std::int64_t>(classes[i]) == labels[i] ? 1 : 0;
  return right / static_cast<double>(labels.size());
}

}  // namespace

TEST_CASE("the accuracy of predicted classes is what eval measures, without any file of the run's data", "[evaluate]") {
  const Arrays arrays;
  const std::string backend = any_backend();
  const setup::Setup setup = setup_of_text(arrays.config, {backend});
  const fs::path run = arrays.folder / "run";
  train_setup_in(run, setup);
  const auto evaluated = evaluate::evaluate_checkpoint(setup.loaded, run, "last").front();
  fs::copy(arrays.folder / "x_test.idx", arrays.folder / "new.idx");
  for (const char* name : {"x.idx", "y.idx", "x_test.idx", "y_test.idx"}) fs::remove(arrays.folder / name);

  const Predicted classes = predict(setup.loaded, run, arrays.folder / "new.idx");
  CHECK(classes.predictions.kind == PredictionKind::classes);
  CHECK(classes.predictions.shape.empty());
  CHECK(classes.firsts == std::vector<std::int64_t>{0, 16, 32, 48});
  REQUIRE(classes.as<std::int32_t>().size() == 50);
  CHECK(evaluated.measures.at(1).second == accuracy_of(classes.as<std::int32_t>(), arrays.labels));

  // The loss of eval from the logits.
  const std::vector<float> logits =
      predict(setup.loaded, run, arrays.folder / "new.idx", PredictionKind::logits).as<float>();
  const std::vector<float> probabilities =
      predict(setup.loaded, run, arrays.folder / "new.idx", PredictionKind::probabilities).as<float>();
  REQUIRE(logits.size() == 150);
  REQUIRE(probabilities.size() == 150);
  double loss = 0;
  for (std::size_t i = 0; i < 50; ++i) {
    double total = 0;
    for (std::size_t c = 0; c < 3; ++c) total += std::exp(static_cast<double>(logits[3 * i + c]));
    for (std::size_t c = 0; c < 3; ++c) {
      CHECK(std::abs(static_cast<double>(probabilities[3 * i + c]) -
                     std::exp(static_cast<double>(logits[3 * i + c])) / total) < 1e-6);
    }
    const auto label = static_cast<std::size_t>(arrays.labels[i]);
    loss -= std::log(static_cast<double>(probabilities[3 * i + label])) / 50;
    const auto best = std::max_element(logits.begin() + static_cast<std::ptrdiff_t>(3 * i),
                                       logits.begin() + static_cast<std::ptrdiff_t>(3 * i + 3));
    CHECK(classes.as<std::int32_t>()[i] == best - logits.begin() - static_cast<std::ptrdiff_t>(3 * i));
  }
  CHECK(std::abs(loss - evaluated.measures.front().second) < 1e-6);
}

TEST_CASE("any number of examples is predicted, also fewer than devices, and each as in any other company",
          "[evaluate]") {
  const Arrays arrays;
  const setup::Setup setup = setup_of_text(arrays.config);
  const fs::path run = arrays.folder / "run";
  train_setup_in(run, setup);
  const auto all = predict(setup.loaded, run, arrays.folder / "x.idx", PredictionKind::logits).as<float>();
  for (const std::size_t count : {1U, 2U, 3U, 15U, 16U, 17U, 49U}) {
    const std::string some = arrays.write(
        "some.idx", {arrays.inputs.begin(), arrays.inputs.begin() + static_cast<std::ptrdiff_t>(3 * count)});
    const auto found = predict(setup.loaded, run, some, PredictionKind::logits).as<float>();
    REQUIRE(found.size() == 3 * count);
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] - all[i]) <= 1e-6F * std::abs(all[i]));
  }
  for (const char* workers : {"1", "2", "3"}) {
    spec::Loaded loaded = setup_of_text(arrays.config, {std::string("mesh.workers=") + workers}).loaded;
    CHECK(predict(loaded, run, arrays.folder / "x.idx", PredictionKind::logits).as<float>() == all);
  }
}

TEST_CASE("a run whose batch is all of its training split predicts in batches of its rows", "[evaluate]") {
  const Arrays arrays;
  const setup::Setup setup = setup_of_text(arrays.config, {"data.batch_size=all", "data.remainder=mask"});
  const fs::path run = arrays.folder / "run";
  train_setup_in(run, setup);
  std::vector<float> many;
  for (int i = 0; i < 3; ++i) many.insert(many.end(), arrays.inputs.begin(), arrays.inputs.end());
  CHECK(predict(setup.loaded, run, arrays.write("many.idx", many)).firsts == std::vector<std::int64_t>{0, 52, 104});
}

TEST_CASE("a model that ends in the function of its loss is not given it twice", "[evaluate]") {
  const Arrays arrays;
  const std::string layers = "model.layers=[{dense: 3}, softmax]";
  const setup::Setup setup = setup_of_text(arrays.config, {layers});
  const fs::path run = arrays.folder / "run";
  train_setup_in(run, setup);
  const auto probabilities = predict(setup.loaded, run, arrays.folder / "x.idx", PredictionKind::probabilities);
  CHECK(probabilities.bytes == predict(setup.loaded, run, arrays.folder / "x.idx", PredictionKind::logits).bytes);
  const auto values = probabilities.as<float>();
  for (std::size_t i = 0; i < 50; ++i) {
    CHECK(std::abs(values[3 * i] + values[3 * i + 1] + values[3 * i + 2] - 1.0F) < 1e-5F);
  }
}

TEST_CASE("labels 0 and 1 of one output are predicted as classes, with the probability of the second", "[evaluate]") {
  Arrays arrays;
  for (std::int64_t& label : arrays.labels) label = std::min<std::int64_t>(label, 1);
  arrays.folder.write("y.idx", arrays.label_file());
  arrays.folder.write("y_test.idx", arrays.label_file());
  const setup::Setup setup = setup_of_text(arrays.config, {"model.layers=[{dense: 1}]", "loss=sigmoid_cross_entropy"});
  const fs::path run = arrays.folder / "run";
  train_setup_in(run, setup);
  const Predicted classes = predict(setup.loaded, run, arrays.folder / "x.idx");
  CHECK(classes.predictions.shape.empty());
  const Predicted probabilities = predict(setup.loaded, run, arrays.folder / "x.idx", PredictionKind::probabilities);
  CHECK(probabilities.predictions.shape == Shape{1});
  const auto logits = predict(setup.loaded, run, arrays.folder / "x.idx", PredictionKind::logits).as<float>();
  for (std::size_t i = 0; i < 50; ++i) {
    CHECK(std::abs(static_cast<double>(probabilities.as<float>()[i]) -
                   1 / (1 + std::exp(-static_cast<double>(logits[i])))) < 1e-6);
    CHECK(classes.as<std::int32_t>()[i] == (logits[i] > 0 ? 1 : 0));
  }
  const auto evaluated = evaluate::evaluate_checkpoint(setup.loaded, run, "last").front();
  CHECK(evaluated.measures.at(1).second == accuracy_of(classes.as<std::int32_t>(), arrays.labels));
}

TEST_CASE("regression predicts values, and neither has what the other has", "[evaluate]") {
  const Arrays arrays;
  const setup::Setup setup = setup_of_text(
      arrays.config, {"model.layers=[{dense: 1}]", "loss=mean_squared_error", "metrics=[mean_absolute_error]"});
  const fs::path run = arrays.folder / "run";
  train_setup_in(run, setup);
  const Predicted values = predict(setup.loaded, run, arrays.folder / "x.idx");
  CHECK(values.predictions.kind == PredictionKind::values);
  CHECK(values.predictions.shape == Shape{1});
  double error = 0;
  for (std::size_t i = 0; i < 50; ++i) {
    error += std::abs(static_cast<double>(values.as<float>()[i]) - static_cast<double>(arrays.labels[i])) / 50;
  }
  const auto evaluated = evaluate::evaluate_checkpoint(setup.loaded, run, "last").front();
  CHECK(std::abs(error - evaluated.measures.at(1).second) < 1e-6);
  CHECK(test::refusal([&] { predict(setup.loaded, run, arrays.folder / "x.idx", PredictionKind::probabilities); },
                      ExitStatus::usage) ==
        "--as probabilities does not fit the model: its loss, mean_squared_error, is one of numbers | there is --as "
        "values");

  const setup::Setup classifier = setup_of_text(arrays.config);
  const fs::path other = arrays.folder / "other";
  train_setup_in(other, classifier);
  CHECK(test::refusal([&] { predict(classifier.loaded, other, arrays.folder / "x.idx", PredictionKind::values); },
                      ExitStatus::usage) ==
        "--as values does not fit the model: its loss, softmax_cross_entropy, is one of classes | there are --as "
        "classes, --as probabilities and --as logits");
}

TEST_CASE("of an ensemble one member predicts, as it would alone", "[evaluate]") {
  const Arrays arrays;
  const std::string ensemble = "ensemble={axis: models, vary: {seed: [0, 5]}}";
  const setup::Setup both = setup_of_text(arrays.config, {"mesh.axes=[{models: 2}, {devices: 4}]", ensemble});
  const setup::Setup alone = setup_of_text(arrays.config, {"seed=5", "data.seed=0"});
  const fs::path run = arrays.folder / "run", single = arrays.folder / "single";
  train_setup_in(run, both);
  train_setup_in(single, alone);
  CHECK(predict(both.loaded, run, arrays.folder / "x.idx", PredictionKind::logits, 1).bytes ==
        predict(alone.loaded, single, arrays.folder / "x.idx", PredictionKind::logits).bytes);
  CHECK(test::refusal([&] { predict(both.loaded, run, arrays.folder / "x.idx", PredictionKind::logits); },
                      ExitStatus::usage) ==
        "--as logits does not fit an ensemble: probabilities are averaged over its members, logits are not | choose a "
        "member, --member 0 to --member 1, or --as probabilities");
  CHECK(test::refusal([&] { predict(both.loaded, run, arrays.folder / "x.idx", std::nullopt, 2); },
                      ExitStatus::usage) == "the ensemble has no member 2 | its members are 0 to 1");
  CHECK(test::refusal([&] { predict(alone.loaded, single, arrays.folder / "x.idx", std::nullopt, 0); },
                      ExitStatus::usage) == "member 0 is asked for, but the run is no ensemble | leave --member out");
}

TEST_CASE("the members of an ensemble together say the mean of their probabilities, as eval measures it",
          "[evaluate]") {
  const Arrays arrays;
  const bool one_output = GENERATE(false, true);
  std::vector<std::string> set{"mesh.axes=[{models: 3}, {devices: 4}]",
                               "ensemble={axis: models, vary: {seed: [0, 5, 9]}}", "metrics=[accuracy, roc_auc]"};
  std::vector<std::int64_t> labels = arrays.labels;
  if (one_output) {  // of labels 0 and 1
    for (std::int64_t& label : labels) label = label > 0 ? 1 : 0;
    std::string bytes;
    for (const std::int64_t label : labels) bytes += static_cast<char>(label);
    arrays.folder.write("y.idx", idx(8, {50}, bytes));
    arrays.folder.write("y_test.idx", idx(8, {50}, bytes));
    set.insert(set.end(), {"model.layers=[{dense: 5}, relu, {dense: 1}]", "loss=sigmoid_cross_entropy"});
  }
  const setup::Setup setup = setup_of_text(arrays.config, set);
  const fs::path run = arrays.folder / "run";
  train_setup_in(run, setup);
  const std::string inputs = arrays.folder / "x_test.idx";
  const auto together = predict(setup.loaded, run, inputs, PredictionKind::probabilities).as<float>();
  std::vector<double> means(together.size());
  for (std::int64_t member = 0; member < 3; ++member) {
    const auto chances = predict(setup.loaded, run, inputs, PredictionKind::probabilities, member).as<float>();
    for (std::size_t i = 0; i < means.size(); ++i) means[i] += static_cast<double>(chances[i]);
  }
  double loss = 0;
  std::vector<std::int32_t> expected;
  const std::size_t outputs = together.size() / labels.size();
  for (std::size_t i = 0; i < means.size(); ++i) {
    means[i] /= 3;
    CHECK(static_cast<double>(together[i]) == Approx(means[i]).epsilon(1e-6));
  }
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const double* const chances = means.data() + row * outputs;
    const bool first = labels[row] == 0;
    loss -= std::log(one_output ? (first ? 1 - chances[0] : chances[0]) : chances[labels[row]]);
    expected.push_back(one_output ? static_cast<std::int32_t>(chances[0] > 0.5)
                                  : static_cast<std::int32_t>(std::max_element(chances, chances + 3) - chances));
  }
  CHECK(predict(setup.loaded, run, inputs).as<std::int32_t>() == expected);

  const evaluate::CheckpointEvaluation evaluation(setup.loaded, run, "last", std::nullopt, spec::Weights::ema, {});
  const evaluate::Evaluation average = evaluation.evaluate_average();
  REQUIRE(average.measures.size() == 3);
  CHECK(average.is_of_mean);
  CHECK(average.examples == 50);
  CHECK(average.measures[0].second == Approx(loss / 50).epsilon(1e-5));
  CHECK(average.measures[1].second == Approx(accuracy_of(expected, labels)));
  CHECK(average.measures[2].first == "roc_auc");
}

TEST_CASE("members that say the same have together the loss of each, however sure they are", "[evaluate]") {
  const Arrays arrays;
  const bool one_output = GENERATE(false, true);
  // Logits beyond 17, where the nearest f32 to a probability is 1.
  std::vector<std::string> set{"mesh.axes=[{models: 2}, {devices: 4}]", "ensemble={axis: models, vary: {seed: [0, 5]}}",
                               "optimizer={sgd: {}, learning_rate: 0.0}", "train.duration=1 step"};
  if (one_output) {
    std::string bytes;
    for (const std::int64_t label : arrays.labels) bytes += static_cast<char>(label > 0 ? 1 : 0);
    arrays.folder.write("y.idx", idx(8, {50}, bytes));
    arrays.folder.write("y_test.idx", idx(8, {50}, bytes));
    set.insert(set.end(), {"model={layers: [{dense: 1}], init: {values: {dense_0: {kernel: [[30], [-9], [25]], bias: "
                           "[20.0]}}}}",
                           "loss=sigmoid_cross_entropy"});
  } else {
    set.emplace_back(
        "model={layers: [{dense: 3}], init: {values: {dense_0: {kernel: [[30, 0, -30], [9, -25, 7], [0, 45, 8]], bias: "
        "[9.0, 0.0, -50.0]}}}}");
  }
  const setup::Setup setup = setup_of_text(arrays.config, set);
  const fs::path run = arrays.folder / "run";
  train_setup_in(run, setup);
  const evaluate::CheckpointEvaluation evaluation(setup.loaded, run, "last", std::nullopt, spec::Weights::ema, {});
  const double each = evaluation.evaluate_members().front().measures.front().second;
  CHECK(each > 5);
  CHECK(evaluation.evaluate_average().measures.front().second == Approx(each).epsilon(1e-5));
}

TEST_CASE("values of an ensemble are means with the standard deviation over its members, in every format",
          "[evaluate]") {
  const TemporaryFolder folder;
  std::string table = "x,y,z\n", rows = "x\n";
  for (int i = 0; i < 24; ++i) {
    table += std::to_string(i) + "," + std::to_string(200000 + 100 * i) + "," + std::to_string(i % 5) + "\n";
    if (i < 7) rows += std::to_string(i) + ".5\n";
  }
  folder.write("table.csv", table);
  const std::string inputs = folder.write("rows.csv", rows);
  const std::string config = R"(
mesh: {axes: [{models: 3}, {devices: 2}]}
ensemble: {axis: models, vary: {seed: [0, 5, 9]}}
data:
  source: {csv: {train: TABLE, target: [y, z]}}
  batch_size: 8
  normalize_targets: auto
model: {layers: [{dense: 4}, tanh, {dense: 2}]}
loss: mean_squared_error
optimizer: {adam: {}, learning_rate: 0.05}
train: {duration: 4 epochs}
)";
  std::string text = config;
  text.replace(text.find("TABLE"), 5, folder / "table.csv");
  const setup::Setup setup = setup_of_text(text, {});
  const fs::path run = folder / "run";
  train_setup_in(run, setup);

  std::vector<std::vector<float>> members;
  for (std::int64_t m = 0; m < 3; ++m) members.push_back(predict(setup.loaded, run, inputs, {}, m).as<float>());
  const Predicted together = predict(setup.loaded, run, inputs);
  CHECK(together.predictions.has_deviations);
  const std::vector<float> found = together.as<float>();
  REQUIRE(found.size() == 7 * 4);
  for (std::size_t row = 0; row < 7; ++row) {
    for (std::size_t i = 0; i < 2; ++i) {
      double mean = 0, squares = 0;
      for (const std::vector<float>& one : members) mean += static_cast<double>(one[row * 2 + i]) / 3;
      for (const std::vector<float>& one : members)
        squares += std::pow(static_cast<double>(one[row * 2 + i]) - mean, 2);
      CHECK(static_cast<double>(found[row * 4 + i]) == Approx(mean).epsilon(1e-6));
      CHECK(static_cast<double>(found[row * 4 + 2 + i]) == Approx(std::sqrt(squares / 3)).epsilon(1e-4));
    }
  }
  for (const char* const name : {"out.csv", "out.npy", "out.npz"}) {
    const auto file = evaluate::open_prediction_file(folder / name, together.predictions);
    file->write(together.bytes);
    file->finish();
  }
  const std::string csv = test::read_text(folder / "out.csv");
  CHECK(csv.starts_with("prediction_0,prediction_1,std_0,std_1\n"));
  CHECK(std::count(csv.begin(), csv.end(), ',') == 8 * 3);
  CHECK(data::read_npy(folder / "out.npy").shape == Shape{7, 2});
}

TEST_CASE("eval reads the test split alone, by the checkpoint, where the training files are gone", "[evaluate]") {
  const Arrays arrays;
  const auto archive = [&](const std::string& name) {
    run::write_npz(arrays.folder / name, {{"x", {DType::f32, {50, 3}, bytes_of(arrays.inputs)}},
                                          {"y", {DType::i64, {50}, bytes_of(arrays.labels)}}});
    return arrays.folder / name;
  };
  const std::string npz = "data.source={npz: {train: " + archive("train.npz") + ", test: " + archive("test.npz") +
                          ", inputs: x, targets: y}}";
  const auto evaluated = [&](const std::string& name, const std::vector<std::string>& set,
                             const std::vector<std::string>& removed) {
    const setup::Setup setup = setup_of_text(arrays.config, set);
    const fs::path run = arrays.folder / name;
    const Trained trained = train_setup_in(run, setup);
    for (const std::string& file : removed) fs::remove(arrays.folder / file);
    const auto found = evaluate::evaluate_checkpoint(setup.loaded, run, "last").front();
    CHECK(found.split == "test");
    for (const auto& [split, measures] : trained.result().final_measures) {
      if (split == "test") CHECK(found.measures == measures);
    }
    CHECK(test::refusal([&] { evaluate::evaluate_checkpoint(setup.loaded, run, "last", "train"); }, ExitStatus::data)
              .starts_with("cannot open"));
  };
  evaluated("npz", {npz, "data.normalize=auto"}, {"train.npz"});
  evaluated("idx", {"data.normalize=auto"}, {"x.idx", "y.idx"});
}
