// A pass that knows ops, which those of core/graph do not.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Takes out arithmetic that changes no bit: x · 1, which differentiation leaves where its seed meets a product. The
// program comes out simplified and checked.
Program remove_identities(Program program);

}  // namespace pmaptrain
