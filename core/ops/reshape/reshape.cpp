#include "core/ops/reshape/reshape.h"

#include <fmt/format.h>

#include <cstring>

#include "core/ops/support/rules.h"

namespace pmaptrain::ops {

std::vector<Type> Reshape::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 1);
  expect_sizes(name, shape);
  const Type& x = context.operands[0];
  if (numel(shape) != numel(x)) {
    throw TypeError(6,
                    fmt::format("{}: {} has {} elements and {} has {}", name, describe(x), numel(x), to_string(shape),
                                numel(shape)),
                    "reshape keeps the number of elements; slice, pad or broadcast changes it");
  }
  return one_result(x.dtype, shape);
}

Cost Reshape::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results);
}

Cotangents Reshape::derivative(VjpContext& context) const {
  const Shape from = context.b.type(context.operands[0]).shape;
  return {context.b.emit(Reshape{from}, {*context.cotangents[0]})};
}

void Reshape::reference(const ReferenceCall& call) const {
  const std::size_t size = bytes(*call.results[0].type);
  if (size > 0) std::memmove(call.results[0].data, call.operands[0].data, size);
}

}  // namespace pmaptrain::ops
