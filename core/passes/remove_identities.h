// Removes arithmetic that changes no bit.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Removes products x · 1, which differentiation makes because its seed is 1, and casts to the type that a value already
// has. The result is simplified and checked.
Program remove_identities(Program program);

}  // namespace pmaptrain
