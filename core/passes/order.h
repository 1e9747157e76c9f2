// Orders the equations of a list that a pass has changed.
#pragma once

#include <cstddef>
#include <vector>

#include "core/passes/chains.h"

namespace pmaptrain {

// Sorts `nodes` so that each follows the nodes whose results it reads. Of several nodes that could be next, the one
// with the lowest `place` comes first. `place` has a number for each node; `definitions` maps values to indices in
// `nodes`.
std::vector<Equation> topologically_sorted(std::vector<Equation> nodes, const std::vector<std::size_t>& place,
                                           const Definitions& definitions);

}  // namespace pmaptrain
