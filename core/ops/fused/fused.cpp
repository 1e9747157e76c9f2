#include "core/ops/fused/fused.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <unordered_map>

#include "core/ops/all.h"
#include "core/ops/constant/constant.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {

void expect_in_chain(std::string_view op, const Equation& equation, std::int64_t n, std::span<const Value> params,
                     std::span<const Type> types) {
  const auto type = [&](Value value) -> const Type& { return types[static_cast<std::size_t>(value.id)]; };
  const auto one_of_n = [&](Value value) { return numel(type(value)) == n || numel(type(value)) == 1; };
  const OpRules& rules = equation.op.rules();
  const auto* broadcast = equation.op.as<Broadcast>();
  if (rules.view && !equation.is_view()) {
    throw TypeError(8, fmt::format("{}: {} of two operands waits for the second", op, rules.name),
                    "inside a fused region it has one operand");
  }
  if (rules.region || !(rules.elementwise || rules.view || broadcast != nullptr || splat_of(equation.op))) {
    const bool dense = equation.op.as<Constant>() != nullptr;
    throw TypeError(8, fmt::format("{}: {} is not elementwise", op, dense ? "a constant with values" : rules.name),
                    "a fused region holds elementwise ops, casts, constants of one value, views and broadcasts");
  }
  if (broadcast != nullptr) {
    if (!spread_of(*broadcast)) {
      throw TypeError(8,
                      fmt::format("{}: broadcast to {} with dims={} separates the operand's dimensions", op,
                                  to_string(broadcast->shape), to_string(broadcast->dims)),
                      "inside a fused region the operand's dimensions stay adjacent");
    }
    if (!one_of_n(equation.results.front())) {
      throw TypeError(
          8,
          fmt::format("{}: broadcast gives {}, in a chain over {} elements", op,
                      describe(type(equation.results.front())), n),
          "inside a fused region the result of a broadcast has as many elements as the region yields, or one");
    }
    const Value operand = equation.operands.front();
    if (one_of_n(operand) || std::find(params.begin(), params.end(), operand) != params.end()) return;
    throw TypeError(8,
                    fmt::format("{}: broadcast reads {}, in a chain over {} elements", op, describe(type(operand)), n),
                    "a broadcast's operand has one element or is a parameter of the region");
  }
  for (Value value : equation.operands) {
    if (one_of_n(value)) continue;
    throw TypeError(
        7, fmt::format("{}: {} reads {}, in a chain over {} elements", op, rules.name, describe(type(value)), n),
        "only a broadcast reads an operand of another size");
  }
}

std::optional<Spread> spread_of(const Broadcast& broadcast) {
  Spread spread;
  bool before = true, inside = false;
  std::size_t next = 0;
  for (std::size_t d = 0; d < broadcast.shape.size(); ++d) {
    const bool kept = next < broadcast.dims.size() && broadcast.dims[next] == static_cast<std::int64_t>(d);
    if (kept) ++next;
    // Dimension 0 may be rows, and the call may have more of them.
    if (broadcast.shape[d] == 1 && d > 0) continue;
    if (kept && !before && !inside) return std::nullopt;
    if (kept) {
      before = false;
      inside = true;
      spread.size *= broadcast.shape[d];
    } else if (!before) {
      inside = false;
      spread.inner *= broadcast.shape[d];
    }
  }
  return spread;
}

std::vector<Type> Fused::infer(const InferContext& context) const {
  if (!std::equal(context.operands.begin(), context.operands.end(), context.region_params.begin(),
                  context.region_params.end())) {
    throw TypeError(8, "fused: its region's parameters must have the types of its operands",
                    "a parameter has the type of the operand at its position, axes included");
  }
  if (context.region_results.empty() || context.operands.empty()) {
    throw TypeError(8, "fused: its region needs at least one parameter and yields at least one value");
  }
  const std::int64_t n = numel(context.region_results.front());
  for (const Type& result : context.region_results) {
    if (numel(result) != n) {
      throw TypeError(8,
                      fmt::format("fused: its region yields {}, which differ in their number of elements",
                                  describe(context.region_results)),
                      "all results of a chain have the same number of elements; a broadcast repeats a smaller one");
    }
    if (result.varying != context.operands.front().varying) {
      throw TypeError(
          1,
          fmt::format("fused: its operands vary over {} and its region yields a value that varies over {}",
                      context.mesh.to_string(context.operands.front().varying), context.mesh.to_string(result.varying)),
          "pvary the yielded value; every result of a chain varies over the axes of its operands");
    }
  }
  assert(context.region != nullptr);
  for (const Equation& equation : context.region->equations)
    expect_in_chain(name, equation, n, context.region->params, context.types);
  return {context.region_results.begin(), context.region_results.end()};
}

Cost Fused::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results);
}

RowRule Fused::row_rule(std::span<const Type> operands, std::span<const Type> results) const {
  const Shape& shape = results[0].shape;
  const auto same_rows = [&](const Type& type) {
    return !type.shape.empty() && type.shape[0] == shape[0] && numel(type) == numel(shape);
  };
  if (shape.empty() || !std::all_of(results.begin(), results.end(), same_rows)) return {};
  RowRule rule{RowRule::Kind::keeps};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (same_rows(operands[i])) continue;
    if (numel(operands[i]) != 1 || i >= 32) return {};
    rule.whole_operands |= 1U << i;
  }
  return rule;
}

void Fused::reference(const ReferenceCall& call) const {
  struct Held {
    Type type;
    std::vector<std::byte> bytes;
  };
  std::unordered_map<std::int32_t, Held> values;
  // The call may process any number of rows, or of elements.
  const Type& whole = call.types[static_cast<std::size_t>(call.region->results.front().id)];
  const Shape& here = call.results[0].shape();
  const bool by_rows = here.size() == whole.shape.size();
  const auto cut = [&](Type type) {
    if (!by_rows) {
      type.shape = here;
    } else if (here != whole.shape) {
      type.shape.front() = here.front();
    }
    return type;
  };
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const std::byte* const data = call.operands[i].data;
    values[call.region->params[i].id] = {*call.operands[i].type, {data, data + bytes(*call.operands[i].type)}};
  }
  for (const Equation& equation : call.region->equations) {
    const Type& declared = call.types[static_cast<std::size_t>(equation.results.front().id)];
    const bool repeats = equation.op.as<Broadcast>() != nullptr || equation.operands.empty();
    bool full = repeats && !declared.shape.empty();
    std::vector<ConstArray> operands;
    for (Value value : equation.operands) {
      const Held& operand = values.at(value.id);
      operands.push_back({&operand.type, operand.bytes.data()});
      full = full || operands.back().size() == call.results[0].size();
    }
    full = full && numel(declared) == numel(whole);
    Held result{full ? cut(declared) : declared, {}};
    if (!full && numel(declared) == numel(whole)) result.type.shape = {};
    result.bytes.resize(bytes(result.type));
    const Array to{&result.type, result.bytes.data()};
    const bool ranged = !by_rows && equation.op.as<Broadcast>() != nullptr;
    if (equation.op.rules().view || (ranged && operands[0].size() == to.size())) {
      std::copy_n(operands[0].data, result.bytes.size(), to.data);
    } else if (ranged) {
      assert(operands[0].size() == 1);  // a plan does not cut a chain that repeats a vector into ranges of elements
      const std::size_t size = size_of(result.type.dtype);
      for (std::size_t at = 0; at < result.bytes.size(); at += size) std::memcpy(to.data + at, operands[0].data, size);
    } else {
      kernels_of(equation.op).reference(equation.op.data(), {operands, {&to, 1}});
    }
    values[equation.results.front().id] = std::move(result);
  }
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    const std::vector<std::byte>& result = values.at(call.region->results[i].id).bytes;
    std::copy(result.begin(), result.end(), call.results[i].data);
  }
}

}  // namespace pmaptrain::ops
