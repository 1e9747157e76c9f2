#include "core/passes/slice.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/ops/fused/fused.h"
#include "core/ops/reshape/reshape.h"

namespace pmaptrain {

bool is_chain(const Equation& equation) {
  if (equation.op.as<ops::Fused>() != nullptr) return true;
  return equation.op.rules().elementwise && !equation.op.rules().region && !equation.operands.empty();
}

Region region_of(const Equation& chain) {
  if (chain.op.as<ops::Fused>() != nullptr) return chain.regions[0];
  Region region{{}, {chain}, chain.results};
  for (const Value operand : chain.operands) {
    if (std::find(region.params.begin(), region.params.end(), operand) == region.params.end()) {
      region.params.push_back(operand);
    }
  }
  return region;
}

Outside outside_of(const Equation& chain, const Region& region) {
  Outside outside;
  const bool is_fused = chain.op.as<ops::Fused>() != nullptr;
  for (std::size_t i = 0; i < region.params.size(); ++i) {
    outside[region.params[i].id] = is_fused ? chain.operands[i] : region.params[i];
  }
  return outside;
}

bool is_of_columns(const Program& program, const Equation& chain, std::int64_t columns) {
  if (!is_chain(chain) || numel(program.type(chain.results[0])) != columns) return false;
  const Region region = region_of(chain);
  const auto fits = [&](Value value) {
    return numel(program.type(value)) == columns || numel(program.type(value)) == 1;
  };
  return std::all_of(region.equations.begin(), region.equations.end(), [&](const Equation& inner) {
    return inner.op.as<ops::Reshape>() == nullptr && fits(inner.results[0]) &&
           std::all_of(inner.operands.begin(), inner.operands.end(), fits);
  });
}

Slice slice_of(const Region& region, const std::vector<Value>& wanted, const Outside& outside) {
  Slice slice;
  std::unordered_set<std::int32_t> needed;
  const auto need = [&](Value value) {
    if (needed.insert(value.id).second && outside.contains(value.id)) slice.reads.push_back(value);
  };
  for (const Value value : wanted) need(value);
  for (std::size_t i = region.equations.size(); i-- > 0;) {
    const Value result = region.equations[i].results[0];
    if (!needed.contains(result.id) || outside.contains(result.id)) continue;
    slice.equations.push_back(i);
    for (const Value operand : region.equations[i].operands) need(operand);
  }
  std::reverse(slice.equations.begin(), slice.equations.end());
  return slice;
}

Outside copy_slice(Program& program, const Region& region, const Slice& slice, const Outside& outside, Equation& made,
                   Region& body) {
  Outside copies;
  for (const Value value : slice.reads) {
    made.operands.push_back(outside.at(value.id));
    body.params.push_back(copies[value.id] = new_value(program, value));
  }
  for (const std::size_t i : slice.equations) {
    Equation copy = region.equations[i];
    for (Value& operand : copy.operands) operand = copies.at(operand.id);
    const Value result = copy.results[0];
    copy.results = {copies[result.id] = new_value(program, result)};
    body.equations.push_back(std::move(copy));
  }
  return copies;
}

Equation part_of_chain(Program& program, const Equation& chain, const std::vector<Value>& yielded,
                       const Outside& outside) {
  const Region region = region_of(chain);
  Equation part{ops::Fused{}, {}, {}, chain.origin, {}};
  Region body;
  const Outside inside = copy_slice(program, region, slice_of(region, yielded, outside), outside, part, body);
  for (const Value value : yielded) {
    const auto at = std::find(region.results.begin(), region.results.end(), value) - region.results.begin();
    const bool is_result = at < std::ssize(region.results);
    part.results.push_back(is_result ? chain.results[static_cast<std::size_t>(at)] : new_value(program, value));
    body.results.push_back(inside.at(value.id));
  }
  part.regions.push_back(std::move(body));
  return part;
}

Value new_value(Program& program, Value like) {
  program.types.push_back(Type(program.type(like)));
  return Value{static_cast<std::int32_t>(program.types.size() - 1)};
}

}  // namespace pmaptrain
