// Unrolls loops in which devices communicate.
#pragma once

#include <memory>

#include "core/graph/program.h"

namespace pmaptrain {

// The program with every loop in which devices communicate unrolled, so that a runtime meets collectives only outside
// of loops. All values are equal bit for bit. Returns the program itself if it has no such loop. Throws Error (usage)
// if the result would have more than 100,000 equations.
std::shared_ptr<const Program> unroll_communication(std::shared_ptr<const Program> program);

}  // namespace pmaptrain
