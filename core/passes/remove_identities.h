// A pass that depends on particular ops, unlike those of core/graph.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Removes arithmetic that changes no bit: x · 1, which differentiation makes of its seed and a product, and casts to
// the type that a value has. The result is simplified and checked.
Program remove_identities(Program program);

}  // namespace pmaptrain
