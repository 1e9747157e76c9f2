// Values of which devices along axes of the mesh have parts, as layers that are divided over devices make them
// (parallelism.tensor). Sums over devices take f32: values of bf16 are converted, and rounded once afterwards.
#pragma once

#include <cstdint>
#include <span>

#include "core/graph/builder.h"

namespace pmaptrain::equations {

// The position of a device among those along `axes`, i32[], as all_slice counts them: the last axis is the fastest.
Value position_along(Builder& b, AxisSet axes);

// x, which is equal on all devices along `axes`, as a value that varies there. Its cotangent is summed along the axes.
Value varied_along(Builder& b, Value x, AxisSet axes);

// The sum of the parts along `axes`; of bf16 in f32.
Value summed_along(Builder& b, Value part, AxisSet axes);

// All of an array of which device i along `axes` has elements i·n to (i+1)·n - 1 of dimension `dim`, n being its own
// size of it. It has `count` elements there: the others are padding.
Value gathered_along(Builder& b, Value part, AxisSet axes, std::int64_t dim, std::int64_t count);

// Which elements of the last dimension of such a part, of shape [..., n], are among the `count` of the whole: bool of
// the same shape.
Value is_within(Builder& b, const Shape& part, AxisSet axes, std::int64_t count);

}  // namespace pmaptrain::equations
