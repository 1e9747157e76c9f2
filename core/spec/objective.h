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
  ClassWeights positive_weights;  // one for each output
};
// Of a single output or several labels sigmoid_logits (model::Model::outputs).
struct Focal {
  static constexpr Outputs outputs = Outputs::softmax_logits;
  double gamma = 2.0;
  std::optional<double> alpha;
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
// The outputs are quantiles of each number of a target: those of the first, then those of the second, and so on.
struct Quantile {
  static constexpr Outputs outputs = Outputs::values;
  std::vector<double> q{0.1, 0.5, 0.9};
};
// The outputs are logarithms of rates; predictions and metrics are of the rates.
struct Poisson {
  static constexpr Outputs outputs = Outputs::values;
};
using Loss = std::variant<SoftmaxCrossEntropy, SigmoidCrossEntropy, Focal, MeanSquaredError, MeanAbsoluteError, Huber,
                          Quantile, Poisson>;
// The key of the loss: "softmax_cross_entropy".
std::string to_string(const Loss& loss);

Outputs outputs_of(const Loss& loss);
inline bool takes_numbers(const Loss& loss) { return outputs_of(loss) == Outputs::values; }
// Whether its class weights, or its positive weights, are those that balance the training split.
bool balances_classes(const Loss& loss);
bool balances_positives(const Loss& loss);
// The label that does not count, if there is one.
std::optional<std::int64_t> ignored_label(const Loss& loss);

namespace metric {

// How the values of classes or labels become one. micro: of all decisions together; weighted: the mean by how often
// each occurs; samples: of each example, then the mean over examples; none: one value for each class or label.
enum class Average { macro, micro, weighted, samples, none };

// Each metric says which values are better, or that it is no number (none). A `threshold` is the probability above
// which a label counts as predicted.
struct Accuracy {
  static constexpr std::optional<Mode> better = Mode::max;
  static constexpr Average usual = Average::micro;
  Average average = usual;
  double threshold = 0.5;
};
struct SubsetAccuracy {
  static constexpr std::optional<Mode> better = Mode::max;
  double threshold = 0.5;
};
struct TopKAccuracy {
  static constexpr std::optional<Mode> better = Mode::max;
  std::int64_t k = 5;
};
struct Precision {
  static constexpr std::optional<Mode> better = Mode::max;
  static constexpr Average usual = Average::macro;
  Average average = usual;
  double threshold = 0.5;
};
struct Recall {
  static constexpr std::optional<Mode> better = Mode::max;
  static constexpr Average usual = Average::macro;
  Average average = usual;
  double threshold = 0.5;
};
struct F1 {
  static constexpr std::optional<Mode> better = Mode::max;
  static constexpr Average usual = Average::macro;
  Average average = usual;
  double threshold = 0.5;
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
struct MeanAbsolutePercentageError {
  static constexpr std::optional<Mode> better = Mode::min;
};
struct MedianAbsoluteError {
  static constexpr std::optional<Mode> better = Mode::min;
};
struct RocAuc {
  static constexpr std::optional<Mode> better = Mode::max;
  static constexpr Average usual = Average::macro;
  Average average = usual;
};
struct AveragePrecision {
  static constexpr std::optional<Mode> better = Mode::max;
  static constexpr Average usual = Average::macro;
  Average average = usual;
};
struct ConfusionMatrix {
  static constexpr std::optional<Mode> better = std::nullopt;
};

}  // namespace metric

using MetricKind =
    std::variant<metric::Accuracy, metric::SubsetAccuracy, metric::TopKAccuracy, metric::Precision, metric::Recall,
                 metric::F1, metric::RocAuc, metric::AveragePrecision, metric::ConfusionMatrix, metric::Perplexity,
                 metric::MeanAbsoluteError, metric::MeanSquaredError, metric::RootMeanSquaredError,
                 metric::MeanAbsolutePercentageError, metric::MedianAbsoluteError, metric::R2>;
struct Metric {
  MetricKind kind;
  Place place = {};
};

// "accuracy", "top_5_accuracy"; with an average that is not the usual one "f1_micro"
std::string to_string(const Metric& metric);
// Whether the metric has one value for each class.
bool is_per_class(const Metric& metric);
// How it is averaged, if it is; and the probability above which a label counts, if it has one.
std::optional<metric::Average> average_of(const Metric& metric);
double threshold_of(const Metric& metric);
// Whether it is one value, by which the best checkpoint and the like may be selected.
bool is_single_value(const Metric& metric);

}  // namespace pmaptrain::spec
