// Metrics that cannot be computed from sums over examples, such as roc_auc. An evaluation gathers a row of numbers of
// every example, from which the host computes the values; a training step does not compute them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/model/model.h"

namespace pmaptrain::model {

// The weights of the examples of each class, by the class that is predicted for them: [true class][predicted class].
using ConfusionMatrix = std::vector<std::vector<double>>;

// Whether a metric is computed from rows. Metrics that are computed from sums are planned in metrics.cpp.
template <class Kind>
constexpr bool is_of_rows =
    std::is_same_v<Kind, spec::metric::RocAuc> || std::is_same_v<Kind, spec::metric::AveragePrecision> ||
    std::is_same_v<Kind, spec::metric::ConfusionMatrix> || std::is_same_v<Kind, spec::metric::MedianAbsoluteError>;
bool needs_rows(const spec::Metric& metric);

// The number of f32 numbers that an evaluation gathers for each example; 0 if no metric needs rows.
std::int64_t row_size(const Model& model);

// The rows of a device, f32 [B, row_size]. Of classes: the weight, the true class, the predicted class and the
// probabilities that `predict` gives, [B, output...]; of a sequence the first three of each position. Of several
// labels: the weight, the probabilities and the labels. Of numbers: the weight and the absolute errors, in the units of
// the targets. Padding has weight 0. `mask` is that of local_sums().
Value gathered_rows(Builder& b, const Model& model, Value output, Value probabilities, Value targets, Value mask);

struct RowMeasures {
  std::vector<std::pair<std::string, double>> values;
  std::optional<ConfusionMatrix> confusion;
};

// Computes the measures from the rows of all examples, in any order.
//
// roc_auc equals scikit-learn's exactly: of all pairs of an example of the class and an example of another class, the
// fraction in which the first has the higher probability of the class; equal probabilities count half. With several
// classes, the area is computed for each class against the rest. If all examples or none have a class, its area is NaN,
// and so is the mean over the classes. Of several labels the mean is over the others, and "roc_auc_left_out" is their
// number, where there are some. average_precision is Σ (recall - recall before) · precision over the thresholds.
//
// With a threshold the confusion matrix counts class 1 of two as predicted above this probability.
RowMeasures finish_rows(const Model& model, std::span<const float> rows, std::optional<double> threshold = {});

}  // namespace pmaptrain::model
