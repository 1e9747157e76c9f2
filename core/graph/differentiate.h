// Reverse-mode differentiation, program to program.
#pragma once

#include <span>
#include <vector>

#include "core/graph/builder.h"

namespace pmaptrain {

// Appends the equations that pull `seed`, a cotangent of `of` (of its exact type, axis set included), back to `wrt`,
// through the equations of the region that `b` is building. Returns one cotangent for each of `wrt`, of its exact
// type; zeros where `of` does not depend on it. Throws Error (usage) where an op without a derivative is on the path.
std::vector<Value> differentiate(Builder& b, Value of, Value seed, std::span<const Value> wrt);

}  // namespace pmaptrain
