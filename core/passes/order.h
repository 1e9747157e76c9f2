// Orders the equations of a list that a pass has changed.
#pragma once

#include <cstddef>
#include <vector>

#include "core/passes/chains.h"

namespace pmaptrain {

// Orders `nodes` such that each follows the nodes whose results it reads, and otherwise by `place`, which has a number
// for each node. `definitions` has the nodes by index.
std::vector<Equation> in_order(std::vector<Equation> nodes, const std::vector<std::size_t>& place,
                               const Definitions& definitions);

}  // namespace pmaptrain
