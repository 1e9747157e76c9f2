// The common part of the derivatives of elementwise ops.
#pragma once

#include "core/graph/builder.h"

namespace pmaptrain::ops {

// `cotangent`, of the result's shape, as a cotangent of `operand`: the cotangent of a scalar operand is the sum over
// the elements.
Value fit_to_operand(Builder& b, Value cotangent, Value operand);

}  // namespace pmaptrain::ops
