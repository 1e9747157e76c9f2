// The passes that a program goes through before a backend plans it. A pass is in one of these lists, and nowhere else.
#pragma once

#include <span>

#include "core/graph/program.h"

namespace pmaptrain {

using Pass = Program (*)(Program);

// For every backend, in this order. The interpreter gives the program that comes of them the same bits.
std::span<const Pass> passes_of_all_backends();
// For GPUs, after those.
std::span<const Pass> passes_of_gpus();

Program run_passes(Program program, std::span<const Pass> passes);

}  // namespace pmaptrain
