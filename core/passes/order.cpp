#include "core/passes/order.h"

#include <cassert>
#include <functional>
#include <queue>
#include <utility>

#include "core/passes/lists.h"

namespace pmaptrain {

std::vector<Equation> topologically_sorted(std::vector<Equation> nodes, const std::vector<std::size_t>& place,
                                           const Definitions& definitions) {
  Lists readers(nodes.size());
  std::vector<std::size_t> missing(nodes.size(), 0);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (Value operand : nodes[n].operands) {
      const std::size_t* const giver = definitions.find(operand);
      if (giver == nullptr) continue;
      readers.add(*giver, n);
      ++missing[n];
    }
  }
  using Ready = std::pair<std::size_t, std::size_t>;  // place, node
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (missing[n] == 0) ready.emplace(place[n], n);
  }
  std::vector<Equation> ordered;
  ordered.reserve(nodes.size());
  while (!ready.empty()) {
    const std::size_t n = ready.top().second;
    ready.pop();
    for (std::size_t reader : readers[n]) {
      if (--missing[reader] == 0) ready.emplace(place[reader], reader);
    }
    ordered.push_back(std::move(nodes[n]));
  }
  assert(ordered.size() == nodes.size());  // a cycle in the dependencies of nodes
  return ordered;
}

}  // namespace pmaptrain
