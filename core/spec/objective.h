// The loss and the metrics of a config.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/spec/durations.h"

namespace pmaptrain::spec {

struct ClassWeights {
  std::vector<double> each;  // one for each class; empty: all 1
  bool balanced = false;     // those that balance the training split, in place of these
};
// What a loss takes the outputs of the model for.
enum class Outputs {
  softmax_logits,  // of classes, along the last dimension
  sigmoid_logits,  // each of its own
  values  // numbers like the targets, which are numbers whatever their type; other losses read integers as labels
};

// Each loss says what its outputs are.
struct SoftmaxCrossEntropy {
  static constexpr Outputs outputs = Outputs::softmax_logits;
  double label_smoothing = 0.0;
  ClassWeights class_weights;
  std::optional<std::int64_t> ignore_label;  // examples, or positions of a sequence, with this label do not count
};
struct SigmoidCrossEntropy {
  static constexpr Outputs outputs = Outputs::sigmoid_logits;
  ClassWeights class_weights;
};
struct MeanSquaredError {
  static constexpr Outputs outputs = Outputs::values;
};
struct MeanAbsoluteError {
  static constexpr Outputs outputs = Outputs::values;
};
struct Huber {
  static constexpr Outputs outputs = Outputs::values;
  double delta = 1.0;
};
using Loss = std::variant<SoftmaxCrossEntropy, SigmoidCrossEntropy, MeanSquaredError, MeanAbsoluteError, Huber>;
// The key of the loss: "softmax_cross_entropy".
std::string to_string(const Loss& loss);

Outputs outputs_of(const Loss& loss);
inline bool takes_numbers(const Loss& loss) { return outputs_of(loss) == Outputs::values; }
// Whether its class weights are those that balance the training split.
bool balances_classes(const Loss& loss);
// The label that does not count, if there is one.
std::optional<std::int64_t> ignored_label(const Loss& loss);

namespace metric {

enum class Average { macro, none };  // the mean over the classes, or one value for each class

// Each metric says which values are better, or that it is no number (none).
struct Accuracy {
  static constexpr std::optional<Mode> better = Mode::max;
};
struct TopKAccuracy {
  static constexpr std::optional<Mode> better = Mode::max;
  std::int64_t k = 5;
};
struct Precision {
  static constexpr std::optional<Mode> better = Mode::max;
  Average average = Average::macro;
};
struct Recall {
  static constexpr std::optional<Mode> better = Mode::max;
  Average average = Average::macro;
};
struct F1 {
  static constexpr std::optional<Mode> better = Mode::max;
  Average average = Average::macro;
};
struct Perplexity {
  static constexpr std::optional<Mode> better = Mode::min;
};
struct MeanAbsoluteError {
  static constexpr std::optional<Mode> better = Mode::min;
};
struct MeanSquaredError {
  static constexpr std::optional<Mode> better = Mode::min;
};
struct RootMeanSquaredError {
  static constexpr std::optional<Mode> better = Mode::min;
};
struct R2 {
  static constexpr std::optional<Mode> better = Mode::max;
};
struct RocAuc {
  static constexpr std::optional<Mode> better = Mode::max;
  Average average = Average::macro;
};
struct ConfusionMatrix {
  static constexpr std::optional<Mode> better = std::nullopt;
};

}  // namespace metric

using MetricKind = std::variant<metric::Accuracy, metric::TopKAccuracy, metric::Precision, metric::Recall, metric::F1,
                                metric::RocAuc, metric::ConfusionMatrix, metric::Perplexity, metric::MeanAbsoluteError,
                                metric::MeanSquaredError, metric::RootMeanSquaredError, metric::R2>;
struct Metric {
  MetricKind kind;
  Place place = {};
};

// "accuracy", "top_5_accuracy"
std::string to_string(const Metric& metric);
// Whether the metric has one value for each class.
bool is_per_class(const Metric& metric);
// Whether it is one value, by which the best checkpoint and the like may be selected.
bool is_single_value(const Metric& metric);

}  // namespace pmaptrain::spec
