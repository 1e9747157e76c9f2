// Equations shared by losses and metrics, for each example of [B, ...].
#pragma once

#include <vector>

#include "core/graph/builder.h"

namespace pmaptrain::model {

// -Σ t · log softmax(logits) [B], where t is the one-hot label with label smoothing: (1 - smoothing) · one_hot +
// smoothing / C. `labels` is [B], or [B,C] with class probabilities in place of the one-hot label.
Value softmax_cross_entropy(Builder& b, Value logits, Value labels, double smoothing = 0.0);

// The mean over the features of each example, [B]; `values` is [B, features...].
Value feature_mean(Builder& b, Value values);

// output - targets, in the output's element type.
Value difference(Builder& b, Value output, Value targets);

}  // namespace pmaptrain::model
