// Equations that losses and metrics share. They compute a value for each example.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/graph/builder.h"

namespace pmaptrain::losses {

// The classes of outputs [..., C]. Where outputs vary along `axes`, devices along these have parts of C / devices
// classes, rounded up: device i of n has [..., i·n] to [..., (i+1)·n - 1], and what is behind `count` is padding.
struct Classes {
  std::int64_t count = 0;
  AxisSet axes = {};

  bool are_divided(Builder& b, Value output) const { return !axes.empty() && b.type(output).varying.contains(axes); }
};

// Label smoothing of C classes: `rest` is 1 - smoothing, and `share` is smoothing / C.
struct Smoothing {
  Value rest, share;
};

// -Σ t · log softmax(logits) [B...], where t is the one-hot label, with smoothing rest · one_hot + share. `logits` is
// [B...,C], `labels` is [B...] of integers, or [B,C] with class probabilities in place of the one-hot label. Of divided
// classes, labels are integers, and devices send each other three numbers for each row of logits.
Value softmax_cross_entropy(Builder& b, Value logits, Value labels, std::optional<Smoothing> smoothing = {},
                            const Classes& classes = {});

// The class of the largest output, i32 [B...]; of equal ones the first.
Value largest_class(Builder& b, Value output, const Classes& classes);
// Whether each label [B] is among the k classes of the largest outputs [B,C], as 0 and 1. Of equal outputs those of
// lower classes come first.
Value is_among_largest(Builder& b, Value output, Value labels, std::int64_t k, const Classes& classes);

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
