#include "core/ops/loop/loop.h"

namespace pmaptrain::ops {
namespace {

// Types of the region's parameters for these operands. Throws TypeError (rule 7).
std::vector<Type> param_types(const Loop& loop, std::span<const Type> operands) {
  if (loop.iterations < 1) {
    throw TypeError(7, "loop: iterations=" + std::to_string(loop.iterations) + "; at least 1 is needed");
  }
  const auto count = static_cast<std::int64_t>(operands.size());
  if (loop.consts < 0 || loop.carries < 0 || loop.consts > count || loop.carries > count - loop.consts) {
    throw TypeError(7, "loop: consts=" + std::to_string(loop.consts) + " and carries=" + std::to_string(loop.carries) +
                           " of " + std::to_string(count) + " operands");
  }
  const std::int64_t fixed = loop.consts + loop.carries;
  std::vector<Type> params(operands.begin(), operands.end());
  for (std::size_t i = static_cast<std::size_t>(fixed); i < params.size(); ++i) {
    Shape& shape = params[i].shape;
    if (shape.empty() || shape.front() % loop.iterations != 0) {
      throw TypeError(7, "loop: a slice of shape " + to_string(shape) + " does not divide into " +
                             std::to_string(loop.iterations) + " parts along dimension 0");
    }
    shape.front() /= loop.iterations;
  }
  return params;
}

}  // namespace

std::vector<Type> Loop::infer(const InferContext& context) const {
  const std::vector<Type> params = param_types(*this, context.operands);
  if (!std::equal(params.begin(), params.end(), context.region_params.begin(), context.region_params.end())) {
    throw TypeError(7, "loop: its region's parameters must have the types of its operands, slices cut");
  }
  const auto carry_types =
      context.operands.subspan(static_cast<std::size_t>(consts), static_cast<std::size_t>(carries));
  if (context.region_results.size() != carry_types.size()) {
    throw TypeError(7, "loop: its region yields " + std::to_string(context.region_results.size()) + " values for " +
                           std::to_string(carries) + " carries");
  }
  for (std::size_t i = 0; i < carry_types.size(); ++i) {
    if (context.region_results[i] == carry_types[i]) continue;
    throw TypeError(7, "loop: carry " + std::to_string(i) + " is " + to_string(carry_types[i], context.mesh) +
                           ", but the region yields " + to_string(context.region_results[i], context.mesh));
  }
  return {carry_types.begin(), carry_types.end()};
}

std::vector<Value> loop(Builder& b, std::int64_t iterations, std::span<const Value> consts,
                        std::span<const Value> carries, std::span<const Value> slices, const LoopBody& body) {
  const Loop op{iterations, static_cast<std::int64_t>(consts.size()), static_cast<std::int64_t>(carries.size())};
  std::vector<Value> operands(consts.begin(), consts.end());
  operands.insert(operands.end(), carries.begin(), carries.end());
  operands.insert(operands.end(), slices.begin(), slices.end());
  const std::vector<Type> params = param_types(op, types_of(b.program(), operands));
  return b.emit_region(op, operands, params, [&](std::span<const Value> values) {
    return body(values.first(consts.size()), values.subspan(consts.size(), carries.size()),
                values.subspan(consts.size() + carries.size()));
  });
}

}  // namespace pmaptrain::ops
