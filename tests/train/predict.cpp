// Predictions of runs: what they are, and that evaluation computes the same.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/base/error.h"
#include "core/data/array.h"
#include "core/train/checkpoint.h"
#include "core/train/npy.h"
#include "core/train/predictor.h"
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
  train::Predictions predictions;
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
                  std::optional<PredictionKind> kind = std::nullopt, train::MemberNumber member = std::nullopt) {
  train::PredictionRequest request;
  request.input.path = input;
  request.kind = kind;
  request.member = member;
  train::Predictor predictor(loaded, run, request);
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

TEST_CASE("the accuracy of predicted classes is what eval measures, without any file of the run's data", "[train]") {
  const Arrays arrays;
  const std::string backend = any_backend();
  const train::Setup setup = setup_of_text(arrays.config, {backend});
  const fs::path run = arrays.folder / "run";
  train_setup_in(run, setup);
  const auto evaluated = train::evaluate_checkpoint(setup.loaded, run, "last").front();
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

TEST_CASE("any number of examples is predicted, also fewer than devices, and each as in any other company", "[train]") {
  const Arrays arrays;
  const train::Setup setup = setup_of_text(arrays.config);
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

TEST_CASE("a run whose batch is all of its training split predicts in batches of its rows", "[train]") {
  const Arrays arrays;
  const train::Setup setup = setup_of_text(arrays.config, {"data.batch_size=all", "data.remainder=mask"});
  const fs::path run = arrays.folder / "run";
  train_setup_in(run, setup);
  std::vector<float> many;
  for (int i = 0; i < 3; ++i) many.insert(many.end(), arrays.inputs.begin(), arrays.inputs.end());
  CHECK(predict(setup.loaded, run, arrays.write("many.idx", many)).firsts == std::vector<std::int64_t>{0, 52, 104});
}

TEST_CASE("a model that ends in the function of its loss is not given it twice", "[train]") {
  const Arrays arrays;
  const std::string layers = "model.layers=[{dense: 3}, softmax]";
  const train::Setup setup = setup_of_text(arrays.config, {layers});
  const fs::path run = arrays.folder / "run";
  train_setup_in(run, setup);
  const auto probabilities = predict(setup.loaded, run, arrays.folder / "x.idx", PredictionKind::probabilities);
  CHECK(probabilities.bytes == predict(setup.loaded, run, arrays.folder / "x.idx", PredictionKind::logits).bytes);
  const auto values = probabilities.as<float>();
  for (std::size_t i = 0; i < 50; ++i) {
    CHECK(std::abs(values[3 * i] + values[3 * i + 1] + values[3 * i + 2] - 1.0F) < 1e-5F);
  }
}

TEST_CASE("labels 0 and 1 of one output are predicted as classes, with the probability of the second", "[train]") {
  Arrays arrays;
  for (std::int64_t& label : arrays.labels) label = std::min<std::int64_t>(label, 1);
  arrays.folder.write("y.idx", arrays.label_file());
  arrays.folder.write("y_test.idx", arrays.label_file());
  const train::Setup setup = setup_of_text(arrays.config, {"model.layers=[{dense: 1}]", "loss=sigmoid_cross_entropy"});
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
  const auto evaluated = train::evaluate_checkpoint(setup.loaded, run, "last").front();
  CHECK(evaluated.measures.at(1).second == accuracy_of(classes.as<std::int32_t>(), arrays.labels));
}

TEST_CASE("regression predicts values, and neither has what the other has", "[train]") {
  const Arrays arrays;
  const train::Setup setup = setup_of_text(
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
  const auto evaluated = train::evaluate_checkpoint(setup.loaded, run, "last").front();
  CHECK(std::abs(error - evaluated.measures.at(1).second) < 1e-6);
  CHECK(test::refusal([&] { predict(setup.loaded, run, arrays.folder / "x.idx", PredictionKind::probabilities); },
                      ExitStatus::usage) ==
        "--as probabilities does not fit the model: its loss, mean_squared_error, is one of numbers | there is --as "
        "values");

  const train::Setup classifier = setup_of_text(arrays.config);
  const fs::path other = arrays.folder / "other";
  train_setup_in(other, classifier);
  CHECK(test::refusal([&] { predict(classifier.loaded, other, arrays.folder / "x.idx", PredictionKind::values); },
                      ExitStatus::usage) ==
        "--as values does not fit the model: its loss, softmax_cross_entropy, is one of classes | there are --as "
        "classes, --as probabilities and --as logits");
}

TEST_CASE("of an ensemble one member predicts, as it would alone", "[train]") {
  const Arrays arrays;
  const std::string ensemble = "ensemble={axis: models, vary: {seed: [0, 5]}}";
  const train::Setup both = setup_of_text(arrays.config, {"mesh.axes=[{models: 2}, {devices: 4}]", ensemble});
  const train::Setup alone = setup_of_text(arrays.config, {"seed=5", "data.seed=0"});
  const fs::path run = arrays.folder / "run", single = arrays.folder / "single";
  train_setup_in(run, both);
  train_setup_in(single, alone);
  CHECK(predict(both.loaded, run, arrays.folder / "x.idx", PredictionKind::logits, 1).bytes ==
        predict(alone.loaded, single, arrays.folder / "x.idx", PredictionKind::logits).bytes);
  CHECK(test::refusal([&] { predict(both.loaded, run, arrays.folder / "x.idx"); }, ExitStatus::usage) ==
        "the run is an ensemble of 2 members, and predictions are of one | choose it: --member 0 to --member 1");
  CHECK(test::refusal([&] { predict(both.loaded, run, arrays.folder / "x.idx", std::nullopt, 2); },
                      ExitStatus::usage) == "the ensemble has no member 2 | its members are 0 to 1");
  CHECK(test::refusal([&] { predict(alone.loaded, single, arrays.folder / "x.idx", std::nullopt, 0); },
                      ExitStatus::usage) == "member 0 is asked for, but the run is no ensemble | leave --member out");
}

TEST_CASE("eval reads the test split alone, by the checkpoint, where the training files are gone", "[train]") {
  const Arrays arrays;
  const auto archive = [&](const std::string& name) {
    train::write_npz(arrays.folder / name, {{"x", {DType::f32, {50, 3}, bytes_of(arrays.inputs)}},
                                            {"y", {DType::i64, {50}, bytes_of(arrays.labels)}}});
    return arrays.folder / name;
  };
  const std::string npz = "data.source={npz: {train: " + archive("train.npz") + ", test: " + archive("test.npz") +
                          ", inputs: x, targets: y}}";
  const auto evaluated = [&](const std::string& name, const std::vector<std::string>& set,
                             const std::vector<std::string>& removed) {
    const train::Setup setup = setup_of_text(arrays.config, set);
    const fs::path run = arrays.folder / name;
    const Trained trained = train_setup_in(run, setup);
    for (const std::string& file : removed) fs::remove(arrays.folder / file);
    const auto found = train::evaluate_checkpoint(setup.loaded, run, "last").front();
    CHECK(found.split == "test");
    for (const auto& [split, measures] : trained.result().final_measures) {
      if (split == "test") CHECK(found.measures == measures);
    }
    CHECK(test::refusal([&] { train::evaluate_checkpoint(setup.loaded, run, "last", "train"); }, ExitStatus::data)
              .starts_with("cannot open"));
  };
  evaluated("npz", {npz, "data.normalize=auto"}, {"train.npz"});
  evaluated("idx", {"data.normalize=auto"}, {"x.idx", "y.idx"});
}
