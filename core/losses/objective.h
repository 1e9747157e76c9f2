// What a model is trained for: the loss of its outputs against targets, the units of both, and what outputs mean.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/field.h"
#include "core/losses/equations.h"
#include "core/losses/loss.h"

namespace pmaptrain::losses {

struct Objective {
  DType dtype = DType::f32;  // of parameters, their gradients and the output
  Field target;
  // With data.normalize_targets: the mean and the standard deviation of each number of a target. The last layer's
  // output and the loss are then in normalised units, (target - mean) / std.
  std::optional<FieldStatistics> target_statistics;
  std::vector<bool> log_targets;  // whether these are of log(1 + target), by number; empty where none is
  Shape output;                   // of one example
  // Along which devices divide its last dimension, the classes: Classes (equations.h).
  AxisSet output_axes;
  std::string last_layer;  // the kind of the layer that gives it: "dense"
  Loss loss;
  Place loss_place;
  // Examples have weights, or labels are ignored, so measures and gradients are weighted means.
  bool weighted = false;
  // Targets are those of the positions of sequences with lengths: labels, behind which the data have a label that is
  // ignored, or numbers.
  bool has_padding = false;

  // Class labels: one for each example, or one for each position of a sequence [L] or pixel of an image [H, W].
  bool has_labels() const { return target.dtype == DType::i32; }
  bool has_sequences() const { return has_labels() && !target.shape.empty() && !is_multi_label(); }
  bool has_padded_numbers() const { return has_padding && !has_labels(); }
  // The numbers of a target, of which metrics have one value each: [T, C] of padded positions are C.
  std::int64_t numbers_of_target() const {
    return numel(target.shape) / (has_padded_numbers() ? target.shape.front() : 1);
  }
  // What the loss takes the outputs for; that of focal depends on the targets.
  Outputs outputs() const;
  // Several labels for each example, [L] of 0 and 1, with a sigmoid for each.
  bool is_multi_label() const {
    return target.shape.size() == 1 && target.shape == output && outputs() == Outputs::sigmoid_logits;
  }
  // Targets of softmax_cross_entropy that are class probabilities [C] in place of a label, such as one-hot rows.
  bool has_distributions() const {
    return is_floating(target.dtype) && target.shape.size() == 1 && target.shape.front() > 1 &&
           outputs() == Outputs::softmax_logits;
  }
  // Labels 0 and 1 for one logit, with sigmoid_cross_entropy.
  bool is_binary() const { return has_labels() && target.shape.empty() && outputs() == Outputs::sigmoid_logits; }
  // With ignore_label: examples, or positions of a sequence, with this label do not count.
  std::optional<std::int64_t> ignored_label() const { return loss->ignored_label(); }
  // The number of classes if the loss takes labels; else 0.
  std::int64_t classes() const;
  // Whether a batch may have examples, but nothing that counts.
  bool may_count_nothing() const { return ignored_label() || has_padding; }
  // The classes of outputs that may be divided.
  Classes divided_classes() const { return {output.empty() ? 0 : output.back(), output_axes}; }
  // The classes or labels that metrics have values of.
  std::int64_t measured_classes() const { return is_multi_label() ? output.front() : classes(); }
};

// "f32[10]"
std::string shown(DType dtype, const Shape& shape);

// How labels of pixels and of positions are stored.
inline constexpr const char* labels_of_pixels_help =
    "save labels as integers: (N, H, W) of pixels, for outputs [H, W, C], and (N, T, 1) of the positions of sequences, "
    "for outputs [T, C]; in NumPy, y.argmax(-1) makes labels of one-hot masks";
// What has metrics of labels.
inline constexpr const char* metrics_of_masks_help =
    "metrics of masks take integer labels (N, H, W), with softmax_cross_entropy and outputs [H, W, C], for masks of 0 "
    "and 1 of 2 classes; metrics: [] leaves the loss";

// Appends to `errors` what does not fit. `name` and `place` are those of the loss or metric in the config; `instead`
// names another one, which errors suggest.
class Checks {
 public:
  // `source` is the place of the data, and `reads_integers` whether its targets may be integers that are read as
  // numbers.
  Checks(const Objective& objective, const Place& source, bool reads_integers, std::vector<Diagnostic>& errors)
      : objective_(objective), source_(source), reads_integers_(reads_integers), errors_(errors) {}

  // Requires that outputs are logits, and targets labels or class probabilities.
  void need_classes(const std::string& name, const Place& place, const std::string& instead) const;
  // Requires one label for each example, not a sequence of labels.
  void need_one_label(const std::string& name, const Place& place) const;
  // Requires that targets are numbers, in the shape of the outputs. Shapes are never broadcast: (N) against (N,1) would
  // give (N,N).
  void need_numbers(const std::string& name, const Place& place, const std::string& instead) const;

  void refuse(const Place& place, std::string message, std::string help) const;
  std::string targets() const;
  std::string output() const;

 private:
  void need_logits_of_positions(const std::string& name, const Place& place) const;
  void refuse_targets(const Place& place, const std::string& name, const std::string& takes, const std::string& what,
                      const std::string& help) const;
  std::string if_labels() const;

  const Objective& objective_;
  const Place& source_;
  const bool reads_integers_;
  std::vector<Diagnostic>& errors_;
};

// What checks a loss: its targets, and the weights of the classes.
struct LossChecks {
  const Checks& checks;
  const Objective& objective;
  std::string name;
  const std::vector<double>& balanced;  // class weights that balance the training split

  void need_classes() const { checks.need_classes(name, objective.loss_place, "mean_squared_error"); }
  void need_numbers() const { checks.need_numbers(name, objective.loss_place, "softmax_cross_entropy"); }
  // Requires what losses with a sigmoid for each output take.
  void need_sigmoids() const;
  void refuse(std::string message, std::string help) const {
    checks.refuse(objective.loss_place, std::move(message), std::move(help));
  }
  // Completes class weights. Weights that balance the training split need labels; a class without an example there has
  // the weight 1.
  void complete(ClassWeights& weights, std::int64_t classes) const;
};

struct LossCall {
  Builder& b;
  Value output, targets;
  const Numbers& numbers;
  std::optional<Value> inside = {};  // bool[B,T]: of padded numbers, which positions are those of an example
  Classes classes = {};

  // The mean of values [B, features...] over the features of each example, [B]. What is outside counts as 0.
  Value mean(Value values) const;
};

// Checks the loss of the objective. If the config asks for balanced class weights, gives the loss `class_weights`,
// which balance the classes of the training split.
void check_loss(Objective& objective, const std::vector<double>& class_weights, const Checks& checks);

// The numbers (numbers.h) that the loss reads, in training and in evaluation.
std::vector<Number> loss_numbers(const Objective& objective);
// Converts targets [B, target...] to normalised units, and outputs from these to the units of the targets. Both return
// their operand if targets are not normalised. Computed in f64, so that a mean much larger than the standard deviation
// costs no digits; outputs stay f64 where targets are. Outputs of logarithms are inverted: finite, and at least 0.
Value normalised_targets(Builder& b, const Objective& objective, Value targets);
// Of log(1 + target): the largest f32 is e^88.7.
inline constexpr double largest_log_target = 88.7;
Value in_units_of_targets(Builder& b, const Objective& objective, Value output);
// The element type of values in units of the targets.
inline DType dtype_of_values(const Objective& objective) {
  return objective.target.dtype == DType::f64 ? DType::f64 : objective.dtype;
}
// The values that metrics compare with targets, [B, target...], from outputs in normalised units. Of quantiles it takes
// the one nearest to the median, of logarithms of rates the rates, else the outputs.
Value point_outputs(Builder& b, const Objective& objective, Value output);
// The loss of each example, [B] (of each position, [B, T], where labels of sequences are ignored), from outputs [B,
// output...] and targets [B, target...]. With data.normalize_targets, both are in normalised units.
Value example_losses(Builder& b, const Objective& objective, Value output, Value targets, const Numbers& numbers,
                     std::optional<Value> inside = {});

// Whether the loss is one of classes, so that there are classes, probabilities and logits, but no values.
bool is_classifier(const Objective& objective);

// For a model with one output for each label, the value above which an output means class 1, with at least this
// probability: for 0.5 it is 0 for a logit, 0.5 if the last layer is a sigmoid. None if a label has several outputs.
std::optional<double> class_threshold(const Objective& objective, double probability = 0.5);
// Whether an example has one of two classes, with an output for each: class 1 may be predicted from another probability
// on than one half.
bool is_of_two_classes(const Objective& objective);
// How the class of an example follows from its outputs: the argmax, or for class 1 whether a number is above a
// threshold: the only output, the second one, or the second less the first.
struct Decision {
  enum class By : std::uint8_t { argmax, only_output, second, difference } by = By::argmax;
  double threshold = 0;
  Classes classes = {};
};
// That by which class 1 of two is predicted with more than this probability; of more classes the argmax.
Decision class_decision(const Objective& objective, double probability = 0.5);
// The predicted class, i32 [B], or [B,L] of each position of a sequence. The metric accuracy counts these.
Value predicted_class(Builder& b, Value output, const Decision& decision);

// What is predicted and what is true of several labels, as 0 and 1 [B, L]: 1 where an output is above the threshold,
// and where a target is above one half.
struct LabelDecisions {
  Value predicted, truth;
};
LabelDecisions label_decisions(Builder& b, Value output, Value targets, double threshold);

// The true class, i32 [B] or [B,L]: the label, or the argmax of the class probabilities.
Value true_class(Builder& b, Value targets);
// The outputs with all classes, if devices have parts of them.
Value whole_outputs(Builder& b, const Objective& objective, Value output);
// What the loss makes of the outputs of a classifier: softmax along the last dimension, or sigmoid. If the last layer
// is that function, returns the outputs.
Value probabilities(Builder& b, const Objective& objective, Value output);

// How predictions follow from the outputs of the last layer.
enum class OutputKind : std::uint8_t {
  softmax_logits,  // probabilities are their softmax along the last dimension
  sigmoid_logits,  // probabilities are their sigmoid
  log_rates,       // values are their exp
  identity         // the outputs are probabilities, or values, themselves
};
OutputKind output_kind(const Objective& objective);

// The interface for a loss of this kind.
template <class Kind>
class Held final : public declare::Holds<LossRules, Kind> {
  using declare::Holds<LossRules, Kind>::kind_;
  static_assert(
      requires { Kind::outputs; }, "this loss has no `outputs`: what it takes the outputs of the model for");
  static_assert(
      requires(Kind & kind, const LossChecks& checks) { kind.check(checks); },
      "this loss has no check() of its targets");
  static_assert(
      requires(const Kind& kind, const Objective& objective) { kind.numbers(objective); },
      "this loss has no numbers(): the scalars of the config that its equations read");
  static_assert(
      requires(const Kind& kind, const LossCall& call) { kind.losses(call); },
      "this loss has no losses(): its equations");

 public:
  using declare::Holds<LossRules, Kind>::Holds;

  Outputs outputs() const override { return Kind::outputs; }
  Loss checked(const LossChecks& checks) const override {
    Kind made = kind_;
    made.check(checks);
    return made;
  }
  std::vector<Number> numbers(const Objective& objective) const override { return kind_.numbers(objective); }
  Value losses(const LossCall& call) const override { return kind_.losses(call); }
  const ClassWeights* class_weights() const override {
    if constexpr (requires { kind_.class_weights; }) return &kind_.class_weights;
    return nullptr;
  }
  const ClassWeights* positive_weights() const override {
    if constexpr (requires { kind_.positive_weights; }) return &kind_.positive_weights;
    return nullptr;
  }
  bool takes_parts_of_classes() const override {
    if constexpr (requires { Kind::takes_parts_of_classes; }) return Kind::takes_parts_of_classes;
    return false;
  }
  std::optional<std::int64_t> ignored_label() const override {
    if constexpr (requires { kind_.ignore_label; }) return kind_.ignore_label;
    return std::nullopt;
  }
};

}  // namespace pmaptrain::losses
