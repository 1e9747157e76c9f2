// Equations that losses and metrics share. They compute a value for each example.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/graph/builder.h"

namespace pmaptrain::losses {

// Label smoothing of C classes: `rest` is 1 - smoothing, and `share` is smoothing / C.
struct Smoothing {
  Value rest, share;
};

// -Σ t · log softmax(logits) [B...], where t is the one-hot label, with smoothing rest · one_hot + share. `logits` is
// [B...,C], `labels` is [B...] of integers, or [B,C] with class probabilities in place of the one-hot label.
Value softmax_cross_entropy(Builder& b, Value logits, Value labels, std::optional<Smoothing> smoothing = {});

// The mean over the features of each example, [B]; `values` is [B, features...].
Value feature_mean(Builder& b, Value values);

// Of values [B, T...] of the positions of a sequence the mean of each example, [B]. Where labels are ignored, the
// values as they are: each position then has a weight of its own (ExampleMask).
Value position_mean(Builder& b, Value values, std::optional<std::int64_t> ignored_label);

// `weights` [B], or [B, T...], of examples with these labels: 0 where the label is ignored. Of sequences each position
// has its share of the weight of its example: one of `positions`.
Value counting_weights(Builder& b, Value weights, Value labels, std::int64_t ignored_label, std::int64_t positions);

// output - targets, in the output's element type.
Value difference(Builder& b, Value output, Value targets);

// Each of `weights`, [features], for values [B, features].
Value of_features(Builder& b, Value like, const std::vector<double>& weights);

// Targets in the shape of the outputs, of labels 0 and 1 too.
Value targets_like(Builder& b, Value output, Value targets);

}  // namespace pmaptrain::losses
