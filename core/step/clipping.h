// Norms of the gradient, and the mean gradient, clipped as the config says.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/graph/builder.h"
#include "core/model/buckets.h"
#include "core/model/numbers.h"
#include "core/spec/spec.h"

namespace pmaptrain::train {

// Gradients in buckets, and where the gradient of each trained parameter lies.
struct GradientBuckets {
  std::vector<Value> values;  // by bucket
  // By bucket: for each trained parameter, in the order of the model, the first row of its gradient and the row behind
  // it. Rows have bucket_unit elements. Both are 0 for a parameter of another bucket.
  std::vector<std::vector<double>> rows;
};
GradientBuckets gradient_buckets(const model::Model& model, std::span<const std::size_t> trained,
                                 std::span<const model::Bucket> buckets, std::vector<Value> values);
// The same buckets with other values.
GradientBuckets with_values(GradientBuckets buckets, std::vector<Value> values);

// A bucket as rows of bucket_unit elements.
Value rows_of_bucket(Builder& b, Value bucket);

// The norms of all gradients together: the global norm, f64[], and the largest magnitude of an element, of `dtype`.
// Squares are computed in f64, where the square of an f32 gradient cannot overflow. They are added by row, then by
// parameter, then in the order of the model, so the sum does not depend on the buckets. Both norms are 0 without
// values.
struct Norms {
  Value global, largest;
};
Norms norms_of(Builder& b, const GradientBuckets& gradients, DType dtype);

// How the mean gradient is clipped: the factor for its global norm, and its largest magnitude after clipping.
struct Clipping {
  Value largest;
  std::optional<Value> factor;
};
// `norms` are the norms of the mean gradient, which is `sums` divided by `divisor`. The gradient is clipped by value
// first (optax.clip), and the result by its global norm (optax.clip_by_global_norm).
Clipping emit_clipping(Builder& b, const spec::OptimizerSpec& optimizer, const model::Numbers& numbers,
                       const GradientBuckets& sums, Value divisor, const Norms& norms);

// The mean gradient after clipping. Without clipping, `sums` divided by `divisor`.
std::vector<Value> clipped_means(Builder& b, const spec::OptimizerSpec& optimizer, const model::Numbers& numbers,
                                 std::span<const Value> sums, Value divisor, const Clipping& clipping);

// The numbers that the equations of clipping read.
std::vector<model::Number> clipping_numbers(const spec::OptimizerSpec& optimizer, DType dtype);

}  // namespace pmaptrain::train
