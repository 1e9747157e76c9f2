// What the derivatives of elementwise ops share.
#pragma once

#include "core/graph/builder.h"

namespace pmaptrain::ops {

// `cotangent`, of the result's shape, as a cotangent of `operand`: a scalar that stood for every element gets their
// sum.
Value fit_to_operand(Builder& b, Value cotangent, Value operand);

}  // namespace pmaptrain::ops
