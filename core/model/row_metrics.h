// Metrics that cannot be computed from sums over examples, such as roc_auc. An evaluation gathers a row of numbers of
// every example, from which the host computes the values; a training step does not compute them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/metrics/rows.h"
#include "core/model/model.h"

namespace pmaptrain::model {

using metrics::RowMeasures;

// The number of f32 numbers that an evaluation gathers for each example; 0 if no metric needs rows.
std::int64_t row_size(const Model& model);

// The rows of a device, f32 [B, row_size]. Of classes: the weight, the true class, the predicted class and the
// probabilities that `predict` gives, [B, output...]; of a sequence the first three of each position. Of several
// labels: the weight, the probabilities and the labels. Of numbers: the weight and the absolute errors, in the units of
// the targets. Padding has weight 0. `mask` is that of local_sums(). `chances` are the probabilities, where these are
// not made of the outputs.
Value gathered_rows(Builder& b, const Model& model, Value output, std::optional<Value> chances, Value targets,
                    Value mask);

// Computes the measures from the rows of all examples, in any order.
//
// With a threshold the confusion matrix counts class 1 of two as predicted above this probability.
RowMeasures finish_rows(const Model& model, std::span<const float> rows, std::optional<double> threshold = {});

}  // namespace pmaptrain::model
