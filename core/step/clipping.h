// The norms of the gradient, and the mean gradient after clipping.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/equations/numbers.h"
#include "core/graph/builder.h"
#include "core/model/buckets.h"
#include "core/optimizers/options.h"

namespace pmaptrain::step {

// Gradients in buckets, or in shards of buckets, and the places of the trained parameters' gradients in them.
struct GradientBuckets {
  std::vector<Value> values;     // by bucket
  std::vector<AxisSet> divided;  // by bucket: as Bucket::divided
  // By bucket: two numbers for each trained parameter, in the order of the model. They are the begin and the end of the
  // range of rows with its gradient, or 0 and 0 if its gradient is in another bucket. A row has bucket_unit elements.
  std::vector<std::vector<double>> row_ranges;
};
GradientBuckets gradient_buckets(const model::Model& model, const Mesh& mesh, std::span<const std::size_t> trained,
                                 std::span<const model::Bucket> buckets, std::vector<Value> values);
// The same places with other values.
GradientBuckets with_values(GradientBuckets buckets, std::vector<Value> values);

// Reshapes a bucket to rows of bucket_unit elements.
Value bucket_as_rows(Builder& b, Value bucket);

// The norms of all gradients together; both are 0 if there are no gradients. Squares are computed in f64, where the
// square of an f32 gradient cannot overflow. They are added by row, then by parameter, then, of a divided one, over the
// devices that have parts of it, then in the order of the model, so the sum does not depend on the buckets. Each
// element is counted once, and padding is 0.
struct Norms {
  Value global;   // f64[]: the square root of the sum of all squares
  Value max_abs;  // the largest magnitude of an element, a scalar of the gradients' dtype
};
Norms norms_of(Builder& b, const GradientBuckets& gradients, DType dtype);

// How the mean gradient is clipped.
struct Clipping {
  Value max_abs;                // the largest magnitude of an element after clipping
  std::optional<Value> factor;  // scales the gradient to at most the allowed global norm; none if that is not limited
};
// `norms` are the norms of the mean gradient, which is `sums` divided by `divisor`. The gradient is clipped by value
// first (optax.clip), and the result by its global norm (optax.clip_by_global_norm).
Clipping emit_clipping(Builder& b, const optimizers::Options& optimizer, const equations::Numbers& numbers,
                       const GradientBuckets& sums, Value divisor, const Norms& norms);

// The mean gradient, `sums` divided by `divisor`, after clipping.
std::vector<Value> clipped_mean_gradients(Builder& b, const optimizers::Options& optimizer,
                                          const equations::Numbers& numbers, std::span<const Value> sums, Value divisor,
                                          const Clipping& clipping);

// The numbers (scalar inputs) that the equations of clipping read.
std::vector<equations::Number> clipping_numbers(const optimizers::Options& optimizer, DType dtype);

}  // namespace pmaptrain::step
