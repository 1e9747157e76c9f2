// Targets that a loss cannot take: whose fault it is, and what is said.
#include <cmath>
#include <cstring>

#include "core/losses/mean_squared_error.h"
#include "core/losses/sigmoid_cross_entropy.h"
#include "core/setup/data_checks.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

const Place source{"net.yaml", 2, 9, 3, "data: {source: npz}"};

// A split of these targets, of a file where `origin` names one.
class Targets : public data::Dataset {
 public:
  Targets(data::Field field, Numbers values) : field_(std::move(field)), values_(std::move(values)) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(values_.size()) / numel(field_.shape); }
  data::Field input() const override { return {DType::f32, {4}}; }
  data::Field target() const override { return field_; }
  void read(std::int64_t index, std::byte*, std::byte* target) const override {
    for (std::int64_t i = 0; i < numel(field_.shape); ++i, target += sizeof(float)) {
      const auto value = static_cast<float>(values_[static_cast<std::size_t>(index * numel(field_.shape) + i)]);
      std::memcpy(target, &value, sizeof value);
    }
  }
  std::optional<std::pair<std::int64_t, std::int64_t>> label_range() const override {
    if (is_floating(field_.dtype)) return std::nullopt;
    return std::pair{static_cast<std::int64_t>(values_.front()), static_cast<std::int64_t>(values_.back())};
  }

 private:
  data::Field field_;
  Numbers values_;
};

// "place: message | help" of what a model with `outputs` says of these targets, which is the data's fault.
std::string refused(const losses::Loss& loss, std::int64_t outputs, const Targets& targets,
                    ExitStatus expected = ExitStatus::data) {
  Network net = network({layer("dense_0", layers::Dense{outputs})}, loss);
  net.data_place = source;
  try {
    setup::check_targets(model::make_model(net, targets.input(), targets.target()), targets, source);
  } catch (const Error& error) {
    CHECK(error.status() == expected);
    const Diagnostic& first = error.diagnostics().front();
    CHECK((first.place == (expected == ExitStatus::data ? source : net.loss_place)));
    return first.message + " | " + first.help;
  }
  return "accepted";
}

Targets labelled(Numbers values, std::string origin = "array 'y' of 'a.npz'") {
  return {{DType::i32, {}, std::move(origin)}, std::move(values)};
}
Targets numbers(Numbers values, Shape shape = {1}, std::string origin = "'y.idx'") {
  return {{DType::f32, std::move(shape), std::move(origin)}, std::move(values)};
}

}  // namespace

TEST_CASE("labels out of range are an error of the data, with the name of their array", "[setup]") {
  const losses::SoftmaxCrossEntropy softmax;
  CHECK(refused(softmax, 5, labelled({0, 4})) == "accepted");
  CHECK(refused(softmax, 5, labelled({0, 9})) ==
        "the labels in array 'y' of 'a.npz' range from 0 to 9, but the model has 5 outputs: classes 0 to 4 | end the "
        "layers with dense: 10");
  CHECK(refused(softmax, 5, labelled({-1, 3}, "")) ==
        "the labels range from -1 to 3, but the model has 5 outputs: classes 0 to 4 | labels start at 0; if "
        "-1 marks what has no label, write loss: {softmax_cross_entropy: {ignore_label: -1}}");
  CHECK(refused(losses::SigmoidCrossEntropy{}, 1, labelled({0, 1})) == "accepted");
  CHECK(refused(losses::SigmoidCrossEntropy{}, 1, labelled({0, 9})) ==
        "the labels in array 'y' of 'a.npz' range from 0 to 9, but sigmoid_cross_entropy takes 0 and 1 | use "
        "softmax_cross_entropy for more than two classes");
}

TEST_CASE("sigmoid_cross_entropy refuses targets outside of 0 to 1", "[setup]") {
  const losses::SigmoidCrossEntropy sigmoid;
  CHECK(refused(sigmoid, 1, numbers({0, 0.5, 1, -0.0})) == "accepted");
  const std::string rest =
      ", but sigmoid_cross_entropy takes numbers from 0 to 1 | mean_squared_error accepts any numbers";
  CHECK(refused(sigmoid, 1, numbers({0, 0.5, -0.25})) == "the target of example 2 in 'y.idx' has -0.25" + rest);
  CHECK(refused(sigmoid, 2, numbers({0, 1, 1, 1.5}, {2}, "")) == "the target of example 1 has 1.5" + rest);
  CHECK(refused(sigmoid, 1, numbers({std::nan("")})).find("has .nan, but") != std::string::npos);
  CHECK(refused(losses::MeanSquaredError{}, 1, numbers({-3, 7})) == "accepted");
}

TEST_CASE("targets of the wrong type are an error of the data if they are from a file, else of the config", "[setup]") {
  const std::string pixels =
      "save labels as integers: (N, H, W) of pixels, for outputs [H, W, C], and (N, T, 1) of the positions of "
      "sequences, for outputs [T, C]; in NumPy, y.argmax(-1) makes labels of one-hot masks";
  CHECK(refused(losses::SoftmaxCrossEntropy{}, 3, numbers({0, 1, 2})) ==
        "softmax_cross_entropy takes class labels; the targets in 'y.idx' are f32[1] | mean_squared_error takes "
        "targets like these; if they are labels, store them as integers");
  CHECK(refused(losses::SoftmaxCrossEntropy{}, 3, numbers(Numbers(8, 0.0), {2, 2, 1})) ==
        "softmax_cross_entropy takes one class label an example, or integer labels of its positions; the targets in "
        "'y.idx' are f32[2,2,1] | " +
            pixels);
  // With the type that the file has.
  const Targets map({DType::f32, {2, 2}, "array 'y' of 'a.npz'", "i64"}, Numbers(8, 1.0));
  CHECK(refused(losses::SoftmaxCrossEntropy{}, 3, map) ==
        "softmax_cross_entropy takes one class label an example, or integer labels of its positions; the targets in "
        "array 'y' of 'a.npz' are i64[2,2] | " +
            pixels);
  const Targets row({DType::f32, {3}, "array 'y' of 'a.npz'", "i64"}, {0, 2, 1});
  CHECK(refused(losses::SoftmaxCrossEntropy{}, 3, row) ==
        "the target of example 0 in array 'y' of 'a.npz' has a sum of 3.0, but softmax_cross_entropy takes class "
        "probabilities: at least 0, with a sum of 1 | integers with several numbers an example are one-hot rows; " +
            pixels);
  CHECK(refused(losses::MeanSquaredError{}, 1, labelled({0, 1})) ==
        "mean_squared_error takes numbers; the targets in array 'y' of 'a.npz' are class labels i32[] | "
        "softmax_cross_entropy takes labels");
  CHECK(refused(losses::SoftmaxCrossEntropy{}, 3, numbers({0, 1, 2}, {1}, ""), ExitStatus::usage) ==
        "softmax_cross_entropy takes class labels; the targets are f32[1] | mean_squared_error takes targets like "
        "these; if they are labels, store them as integers");
}
