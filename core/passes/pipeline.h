// The passes that a program goes through before a backend plans it. Every function of type `Pass` is in one of two
// lists.
#pragma once

#include <span>

#include "core/graph/program.h"

namespace pmaptrain {

using Pass = Program (*)(Program);

// The passes for every backend, in order. Except for `widen`, none changes a bit of what the interpreter computes.
std::span<const Pass> passes_of_all_backends();
// The passes for GPUs, which follow those for every backend.
std::span<const Pass> passes_of_gpus();

Program run_passes(Program program, std::span<const Pass> passes);

}  // namespace pmaptrain
