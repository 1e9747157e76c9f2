// Labels that do not count: loss, gradient and metrics are means over the others, however these are divided.
#include <cmath>
#include <cstring>

#include "core/layers/reshape.h"
#include "core/metrics/perplexity.h"
#include "core/metrics/quotients.h"
#include "core/setup/data_checks.h"
#include "core/setup/initialize.h"
#include "tests/catch.h"
#include "tests/model/finite_differences.h"
#include "tests/model/fixture.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

losses::SoftmaxCrossEntropy without(std::int64_t label) {
  losses::SoftmaxCrossEntropy loss;
  loss.ignore_label = label;
  return loss;
}

// What an evaluation of logits finds: its sums, and its measures with "loss". Each device has 4 rows.
Feed evaluated(Network net, const Field& target, const Shape& logits, const Numbers& outputs, const Numbers& targets,
               const Numbers& mask) {
  net.layers = {layer("reshape_0", layers::Reshape{logits})};
  const model::Model model = model::make_model(net, {DType::f64, logits}, target, DType::f64);
  const Mesh mesh({{"devices", 2}});
  const Program program = model::evaluation_program(model, mesh, mesh.all(), 4, all_ops());
  Feed feed{{"inputs", outputs}, {"targets", targets}, {"mask", mask}};
  add_numbers(feed, model::loss_numbers(model));
  Feed found = results_of(program, feed);
  std::vector<Numbers> means;
  for (const metrics::MeasurePart& part : model::measure_parts(model)) {
    means.push_back(found.at(part.name));
    for (double& sum : means.back()) sum /= found.at("count").front();
  }
  for (const auto& [name, value] : model::finish_measures(model, means)) found[name] = {value};
  return found;
}

Numbers logits_of(std::size_t count) {
  Numbers values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(2 * std::sin(1.0 + 1.7 * static_cast<double>(i)));
  return values;
}

// A split of sequences of labels, each as long as `length`.
class Sequences : public data::Dataset {
 public:
  Sequences(std::int64_t length, std::vector<std::int32_t> labels) : length_(length), labels_(std::move(labels)) {}
  std::int64_t size() const override { return std::ssize(labels_) / length_; }
  Field input() const override { return {DType::f32, {length_, 3}}; }
  Field target() const override { return {DType::i32, {length_}, "array 'y' of 'a.npz'"}; }
  void read(std::int64_t index, std::byte*, std::byte* target) const override {
    std::memcpy(target, labels_.data() + index * length_, static_cast<std::size_t>(length_) * sizeof(std::int32_t));
  }
  std::optional<std::pair<std::int64_t, std::int64_t>> label_range() const override {
    const auto [low, high] = std::minmax_element(labels_.begin(), labels_.end());
    return std::pair<std::int64_t, std::int64_t>{*low, *high};
  }

 private:
  std::int64_t length_;
  std::vector<std::int32_t> labels_;
};

// "message | help" of what a model of three classes at each position says of these labels.
std::string refused_labels(const losses::SoftmaxCrossEntropy& loss, std::vector<std::int32_t> labels) {
  const Sequences split(2, std::move(labels));
  const Network net = network({layer("dense_0", layers::Dense{3})}, loss);
  try {
    setup::check_targets(model::make_model(net, split.input(), split.target()), split, {});
  } catch (const Error& error) {
    CHECK(error.status() == ExitStatus::data);
    return error.diagnostics().front().message + " | " + error.diagnostics().front().help;
  }
  return "accepted";
}

}  // namespace

TEST_CASE("an example whose label is ignored changes no measure, whatever its outputs", "[losses]") {
  losses::SoftmaxCrossEntropy loss = without(-7);
  loss.label_smoothing = 0.2;
  loss.class_weights.each = {1, 3, 0.5};
  Network net = network({}, loss);
  net.metrics = {metrics::Metric{metric::Accuracy{}}, metrics::Metric{metric::TopKAccuracy{2}},
                 metrics::Metric{metric::F1{}}, metrics::Metric{metric::Recall{each}},
                 metrics::Metric{metric::Perplexity{}}};
  Numbers outputs = logits_of(24);
  const Feed all = evaluated(net, labels, {3}, outputs, {0, 2, 1, 1, 2, 0, 0, 0}, {1, 1, 1, 1, 1, 0, 0, 0});
  const Numbers ignored_rows = {std::nan(""), 1, 2, 1e308, -1e308, 0};
  std::copy(ignored_rows.begin(), ignored_rows.end(), outputs.begin() + 15);
  const Feed some = evaluated(net, labels, {3}, outputs, {0, 2, 1, 1, 2, -7, -7, 0}, {1, 1, 1, 1, 1, 1, 1, 0});
  CHECK(all.at("count").front() == 5);
  CHECK(some.at("count").front() == 7);  // examples, also those without a label that counts
  for (const auto& [name, values] : all) {
    if (name == "count") continue;
    INFO(name);
    REQUIRE(some.at(name).size() == values.size());
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(some.at(name)[i] == Approx(values[i]).epsilon(1e-12));
  }
  CHECK(std::isfinite(some.at("loss").front()));
}

TEST_CASE("measures of sequences are means over the positions that count, on all devices", "[losses]") {
  Network net = network({}, without(1));  // a class of the model, such as padding
  net.metrics = {metrics::Metric{metric::Accuracy{}}, metrics::Metric{metric::Perplexity{}}};
  const Numbers outputs = logits_of(48);
  // Of two positions each. The first device has one that counts, the second five, and a row of padding.
  const Numbers targets = {1, 1, 1, 1, 0, 1, 1, 1, 0, 2, 2, 1, 2, 0, 2, 2};
  const Numbers mask = {1, 1, 1, 1, 1, 1, 1, 0};
  const Feed found = evaluated(net, {DType::i32, {2}}, {2, 3}, outputs, targets, mask);
  double sum = 0, right = 0, count = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == 1 || mask[i / 2] == 0) continue;
    const auto* const logits = outputs.data() + 3 * i;
    const auto label = static_cast<std::size_t>(targets[i]);
    sum += std::log(std::exp(logits[0]) + std::exp(logits[1]) + std::exp(logits[2])) - logits[label];
    right += std::max_element(logits, logits + 3) - logits == static_cast<std::ptrdiff_t>(label) ? 1 : 0;
    ++count;
  }
  CHECK(count == 6);
  CHECK(found.at("loss").front() == Approx(sum / count).epsilon(1e-12));
  CHECK(found.at("perplexity").front() == Approx(std::exp(sum / count)).epsilon(1e-12));
  CHECK(found.at("accuracy").front() == Approx(right / count).epsilon(1e-12));
}

TEST_CASE("gradients where positions are ignored match finite differences of the loss, in microbatches", "[losses]") {
  Network net = classifier(Mesh({{"devices", 2}}));
  net.loss = without(-100);
  net.layers = {layer("tanh_0", layers::Tanh{}), layer("head", layers::Dense{3})};
  const model::Model model = model::make_model(net, {DType::f64, {2, 2}}, {DType::i32, {2}}, DType::f64);
  const Program program = step::train_program(model, net.step, optimizer_of(net, model, {2, 2}), {2, 2}, all_ops());
  // The first microbatch of the first device has no label that counts.
  Feed feed{{"targets", {-100, -100, 0, 2, -100, 1, 2, 2}}, {"mask", {1, 1, 1, 0}}, {"rows", {0, 1, 2, 3}}};
  feed["inputs"] = logits_of(16);
  add_numbers(feed, step::step_numbers(model, net.step, optimizer_of(net, model)));
  for (const model::Parameter& parameter : model.parameters) {
    feed[parameter.name] = to_numbers(setup::draw(parameter, 5, DType::f64), DType::f64);
  }
  const Feed result = results_of(program, feed);
  check_gradients(program, model, feed, result, {1e-6, 1e-9});
  // Without a label that counts there is no mean, and no update.
  feed["targets"] = Numbers(8, -100);
  const Feed none = results_of(program, feed);
  for (const model::Parameter& parameter : model.parameters) {
    CHECK(none.at(parameter.name) == feed[parameter.name]);
  }
}

TEST_CASE("a label that is ignored need not be a class, and the others must be", "[losses]") {
  CHECK(refused_labels(without(-100), {0, -100, 2, 1}) == "accepted");
  CHECK(refused_labels(without(9), {0, 9, 2, 1}) == "accepted");
  CHECK(refused_labels({}, {0, -100, 2, 1}) ==
        "the labels in array 'y' of 'a.npz' range from -100 to 2, but the model has 3 outputs: classes 0 to 2 | labels "
        "start at 0; if -100 marks what has no label, write loss: {softmax_cross_entropy: {ignore_label: -100}}");
  CHECK(refused_labels(without(-100), {0, -100, 3, 1}) ==
        "the labels in array 'y' of 'a.npz' range from 0 to 3, but the model has 3 outputs: classes 0 to 2 | end the "
        "layers with dense: 4");
  CHECK(refused_labels(without(-100), {0, -100, -1, 1}) ==
        "the labels in array 'y' of 'a.npz' range from -1 to 1, but the model has 3 outputs: classes 0 to 2 | labels "
        "start at 0");
  CHECK(refused_labels(without(-100), {-100, -100}) ==
        "all labels in array 'y' of 'a.npz' are -100, which ignore_label leaves out | a split takes at least one label "
        "that counts");
}

TEST_CASE("labels of a text are also looked at where only windows at other offsets reach", "[losses]") {
  const TemporaryFolder folder;
  const auto setup_with_end = [&](char end) {
    // Windows of 8 at the first offset end before the last three bytes.
    const std::string bytes = std::string(16, '\1') + '\xc8' + std::string(16, '\2') + "\3\3" + end;
    return setup_of_text(R"(mesh: {axes: {devices: 1}}
data: {source: {text: {train: [)" +
                         folder.write("t.bin", bytes) + R"(], tokens: bytes, length: 8}}, batch_size: 2}
model: {layers: [{embedding: {num_embeddings: 256, features: 4}}, {dense: 150}]}
loss: {softmax_cross_entropy: {ignore_label: 200}}
optimizer: {sgd: {}, learning_rate: 0.1}
train: {duration: 1 steps}
)");
  };
  setup_with_end('\3');
  CHECK(test::contains(test::refusal([&] { setup_with_end('\xb4'); }, ExitStatus::data), "range from 1 to 180"));
}

TEST_CASE("ignore_label is refused where targets are class probabilities", "[losses]") {
  const Network net = network({layer("dense_0", layers::Dense{3})}, without(0));
  CHECK(refusal(net, {DType::f32, {4}}, {DType::f32, {3}}) ==
        "ignore_label takes class labels; the targets are f32[3] | remove it, or store one label for each example in "
        "place of class probabilities");
}

TEST_CASE("a batch without a label that counts is skipped, and is said to be the reason", "[losses][train]") {
  const TemporaryFolder folder;
  const auto trained = [&](const std::string& action, const std::string& rows = "1,0\n2,-1\n3,1\n") {
    const std::string path = folder.write("w.csv", "x,y\n" + rows);
    return train_setup(setup_of_text(
        "mesh: {axes: {devices: 1}}\ndata: {source: {csv: {train: " + path +
        ", target: y}}, batch_size: 1, shuffle: false}\nmodel: {layers: [dense: 2]}\nloss: {softmax_cross_entropy: "
        "{ignore_label: -1}}\nmetrics: [accuracy]\noptimizer: {sgd: {}, learning_rate: 0.1}\ntrain: {duration: 3 "
        "steps, log_every: 1 step, on_nonfinite: " +
        action + "}\n"));
  };
  const Trained by_default = trained("halt"), skipped = trained("skip");
  for (const Trained* const run : {&by_default, &skipped}) {
    CHECK(run->ended.exit_status == 0);
    CHECK(run->ended.steps_skipped() == 1);
    const auto logged = run->of<run::Logged>();
    REQUIRE(logged.size() == 3);
    CHECK(std::isnan(logged[1].measures.front().second));
    CHECK(std::isfinite(logged[2].measures.front().second));
  }
  CHECK(by_default.parameters == skipped.parameters);
  CHECK(by_default.of<run::Warned>().back().text == "1 step was skipped: no label of the batch counted (ignore_label)");
  CHECK(skipped.of<run::Warned>().back().text ==
        "1 step was skipped: the loss, the gradient or the update was not finite, or no label of the batch counted "
        "(ignore_label) (train.on_nonfinite: skip)");

  // A step that is not finite still ends the run, wherever the skipped ones are.
  const Trained halted = trained("halt", "1,-1\n1e38,1\n1e38,0\n");
  CHECK(halted.ended.exit_status == 5);
  CHECK(halted.ended.steps_skipped() == 1);
  CHECK(halted.of<run::Warned>().back().text.starts_with("step 3: the loss, the gradient or the update is not finite"));
}

TEST_CASE("running statistics are of all examples, whatever labels the loss ignores", "[losses][train]") {
  const TemporaryFolder folder;
  std::string all = "x,z,y\n", some = all;
  for (int i = 0; i < 24; ++i) {
    const std::string row = std::to_string(i % 5) + "," + std::to_string(i % 7) + ",";
    all += row + std::to_string(i % 2) + "\n";
    some += row + (i % 3 == 0 ? "-1" : std::to_string(i % 2)) + "\n";
  }
  const auto trained = [&](const std::string& file, const std::string& microbatches) {
    return train_setup(
        setup_of_text("mesh: {axes: {devices: 2}}\ndata: {source: {csv: {train: " + folder.write("b.csv", file) +
                      ", target: y}}, batch_size: 12, shuffle: false, microbatches: " + microbatches +
                      "}\nmodel: {layers: [{batch_norm: {momentum: 0.5}}, {dense: 2}]}\nloss: {softmax_cross_entropy: "
                      "{ignore_label: -1}}\noptimizer: {sgd: {}, learning_rate: 0.1}\ntrain: {duration: 4 steps}\n"));
  };
  for (const char* const microbatches : {"1", "3"}) {
    const Trained whole = trained(all, microbatches), in_part = trained(some, microbatches);
    for (const char* const name : {"batch_norm_0.mean", "batch_norm_0.var"}) {
      CHECK((whole.parameters.at(name) == in_part.parameters.at(name)));
    }
    CHECK_FALSE((whole.parameters.at("dense_0.bias") == in_part.parameters.at("dense_0.bias")));
  }
}

TEST_CASE("labels that are mixed cannot be ignored", "[losses][train]") {
  CHECK(test::refusal(
            [] {
              setup_of_text(small_images, {"data.augment=[{mixup: {alpha: 0.2}}]",
                                           "loss={softmax_cross_entropy: {ignore_label: 2}}"});
            },
            ExitStatus::usage) ==
        "mixup mixes the labels of two images, but softmax_cross_entropy leaves out those that are 2 (ignore_label) | "
        "remove one of the two");
}
