// Values whose parts are on devices along axes of the mesh, as layers make them that devices divide
// (parallelism.tensor). Sums over devices take f32: values of bf16 are converted, and rounded once afterwards.
#pragma once

#include <cstdint>
#include <span>

#include "core/graph/builder.h"

namespace pmaptrain::equations {

// Where a device's part begins, i32[], if each device along `axes` has `own` elements. Devices are in the order of
// all_slice: the last axis is the fastest.
Value offset_along(Builder& b, AxisSet axes, std::int64_t own);

// x, which is equal on all devices along `axes`, as a value that varies there. Its cotangent is summed along the axes.
Value varied_along(Builder& b, Value x, AxisSet axes);

// The sum of the parts along `axes`; of bf16 in f32.
Value summed_along(Builder& b, Value part, AxisSet axes);

// The whole array [..., count] of parts [..., n], which the devices along `axes` have in their order. Elements of the
// last devices behind `count` are padding.
Value gathered_along(Builder& b, Value part, AxisSet axes, std::int64_t count);

}  // namespace pmaptrain::equations
