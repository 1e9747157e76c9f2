// The second step of the pass `fuse`: decides which results of a chain are computed again where later chains read them,
// instead of being stored.
#pragma once

#include <cstddef>
#include <vector>

#include "core/passes/chains.h"
#include "core/passes/lists.h"

namespace pmaptrain {

// What it costs to compute an element, in bytes of memory traffic that take as long.
struct ArithmeticBytes {
  double transcendental, division, other;
  double of(const Op& op) const;
};

// By chain: the equations of other chains that it computes again, ascending. A backward chain that reads four results
// of a forward chain, which computes them from one array, reads this array instead: x in place of tanh x, 1 + tanh x
// and so on for a gelu. That is done where it saves more memory traffic than the arithmetic costs, and keeps no more
// bytes than it frees. Copies are carried out like the originals, so no bit changes. `readers` has the readers of each
// equation's result: an equation of a chain by its index, any other as no_chain.
std::vector<std::vector<std::size_t>> find_recomputed(const Dataflow& flow, const Chains& chains, const Lists& readers);

}  // namespace pmaptrain
