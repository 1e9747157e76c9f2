#include <cassert>
#include <map>

#include "core/graph/passes.h"

namespace pmaptrain {

std::vector<Value> synchronise(Builder& b, std::span<const Synchronised> values) {
  std::map<std::uint32_t, std::vector<std::size_t>> buckets;  // by the axes to reduce over
  for (std::size_t i = 0; i < values.size(); ++i) {
    const AxisSet varying = b.type(values[i].value).varying;
    assert(varying.contains(values[i].target));
    buckets[(varying - values[i].target).bits()].push_back(i);
  }
  std::vector<Value> reduced(values.size());
  for (const auto& [bits, members] : buckets) {
    std::vector<Value> operands;
    for (std::size_t i : members) operands.push_back(values[i].value);
    const AxisSet axes = b.type(operands.front()).varying - values[members.front()].target;
    const std::vector<Value> results = axes.empty() ? operands : b.emit_all(b.ops().psum(axes), operands);
    for (std::size_t k = 0; k < members.size(); ++k) reduced[members[k]] = results[k];
  }
  return reduced;
}

}  // namespace pmaptrain
