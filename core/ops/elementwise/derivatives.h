// The common part of the derivatives of elementwise ops.
#pragma once

#include "core/graph/builder.h"

namespace pmaptrain::ops {

// Converts `cotangent`, which has the result's shape, to a cotangent of `operand`. If the operand is a scalar, that is
// the sum over the elements.
Value fit_to_operand(Builder& b, Value cotangent, Value operand);

}  // namespace pmaptrain::ops
