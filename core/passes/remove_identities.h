// Removes arithmetic that changes no bit.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Removes x · 1, which results from the seed of differentiation and a product, and casts to the type that a value
// already has. The result is simplified and checked.
Program remove_identities(Program program);

}  // namespace pmaptrain
