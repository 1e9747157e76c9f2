// Unrolls loops in which devices communicate.
#pragma once

#include <memory>

#include "core/graph/program.h"

namespace pmaptrain {

// Unrolls every loop in which devices communicate, so that backends see collectives only outside of loops. No bit of a
// result changes. Returns the same program if it has no such loop. Throws Error (usage) if the result would have more
// than 100,000 equations.
std::shared_ptr<const Program> unroll_loops_with_collectives(std::shared_ptr<const Program> program);

}  // namespace pmaptrain
