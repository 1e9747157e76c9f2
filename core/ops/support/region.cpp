#include "core/ops/support/region.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/ops/all.h"

namespace pmaptrain::ops {

void run_region(const ReferenceCall& call, const std::function<Type(Value)>& type_here) {
  struct Held {
    Type type;
    std::vector<std::byte> bytes;
  };
  std::unordered_map<std::int32_t, Held> values;
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const ConstArray& operand = call.operands[i];
    values[call.region->params[i].id] = {*operand.type, {operand.data, operand.data + bytes(*operand.type)}};
  }
  for (const Equation& equation : call.region->equations) {
    Held result{type_here(equation.results[0]), {}};
    result.bytes.resize(bytes(result.type));
    const Array to{&result.type, result.bytes.data()};
    std::vector<ConstArray> operands;
    for (const Value value : equation.operands) {
      const Held& operand = values.at(value.id);
      operands.push_back({&operand.type, operand.bytes.data()});
    }
    if (equation.op.rules().view) {
      std::copy_n(operands[0].data, result.bytes.size(), to.data);
    } else {
      kernels_of(equation.op).reference(equation.op.data(), {operands, {&to, 1}});
    }
    values[equation.results[0].id] = std::move(result);
  }
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    const std::vector<std::byte>& result = values.at(call.region->results[i].id).bytes;
    std::copy(result.begin(), result.end(), call.results[i].data);
  }
}

RegionValues::RegionValues(const Region& region) {
  for (const Equation& equation : region.equations) made_by_[equation.results[0].id] = &equation;
}

Value RegionValues::source(Value value) const {
  for (auto found = made_by_.find(value.id); found != made_by_.end() && found->second->is_view();
       found = made_by_.find(value.id)) {
    value = found->second->operands[0];
  }
  return value;
}

const Equation* RegionValues::behind_views(Value value) const {
  const auto found = made_by_.find(source(value).id);
  return found == made_by_.end() ? nullptr : found->second;
}

}  // namespace pmaptrain::ops
