// A new order for the equations of a list that a pass has made.
#pragma once

#include <cstddef>
#include <vector>

#include "core/passes/chains.h"

namespace pmaptrain {

// `nodes` so that each comes after those whose results it reads, and else by `place`, of each node. `definitions` has
// the nodes by their number.
std::vector<Equation> in_order(std::vector<Equation> nodes, const std::vector<std::size_t>& place,
                               const Definitions& definitions);

}  // namespace pmaptrain
