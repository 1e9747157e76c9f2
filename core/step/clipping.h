// Norms of the gradient, and the mean gradient, clipped as the config says.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/graph/builder.h"
#include "core/model/numbers.h"
#include "core/spec/spec.h"

namespace pmaptrain::train {

// Of several values together: the global norm, f64[], and the largest magnitude of an element, of `dtype`. Squares are
// of f64, where no gradient of f32 overflows. Zeros where there are no values.
struct Norms {
  Value global, largest;
};
Norms norms_of(Builder& b, std::span<const Value> values, DType dtype);

// How the mean gradient is clipped: the factor by its global norm, and its largest magnitude afterwards.
struct Clipping {
  Value largest;
  std::optional<Value> factor;
};
// `norms` are those of the mean gradient, which is `sums` by `divisor`. By value first (optax.clip), then by the global
// norm of what that leaves (optax.clip_by_global_norm).
Clipping clipping_of(Builder& b, const spec::OptimizerSpec& optimizer, const model::Numbers& numbers,
                     std::span<const Value> sums, Value divisor, const Norms& norms);

// The mean gradient after clipping. Without it, `sums` by `divisor` alone.
std::vector<Value> clipped_means(Builder& b, const spec::OptimizerSpec& optimizer, const model::Numbers& numbers,
                                 std::span<const Value> sums, Value divisor, const Clipping& clipping);

// What these equations read.
std::vector<model::Number> clipping_numbers(const spec::OptimizerSpec& optimizer, DType dtype);

}  // namespace pmaptrain::train
