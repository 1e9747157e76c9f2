#include "core/ops/concatenate/concatenate.h"

#include <fmt/format.h>

#include <cstring>

#include "core/ops/slice/slice.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {

std::vector<Type> Concatenate::infer(const InferContext& context) const {
  if (context.operands.empty()) {
    throw TypeError(6, fmt::format("{}: of nothing", name), "it takes one operand or more");
  }
  const Type& first = context.operands[0];
  expect_rank(name, first.shape);
  expect_rising_dims(name, {&dim, 1}, first.shape.size());
  const auto d = static_cast<std::size_t>(dim);
  Shape shape = first.shape;
  for (const Type& operand : context.operands.subspan(1)) {
    Shape other = operand.shape;
    if (other.size() == shape.size()) other[d] = first.shape[d];
    if (operand.dtype != first.dtype || other != first.shape) {
      throw TypeError(
          6,
          fmt::format("{}: {} does not continue {} along dimension {}", name, describe(operand), describe(first), dim),
          "operands have one element type and, but for that dimension, one shape");
    }
    shape[d] += operand.shape[d];
  }
  return one_result(first.dtype, std::move(shape));
}

Cost Concatenate::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results);
}

// Each operand gets its part of dy.
Cotangents Concatenate::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Value dy = *context.cotangents[0];
  Cotangents result(context.operands.size());
  Shape limits = b.type(dy).shape;
  Shape starts(limits.size(), 0);
  const auto d = static_cast<std::size_t>(dim);
  for (std::size_t i = 0; i < result.size(); ++i) {
    limits[d] = starts[d] + b.type(context.operands[i]).shape[d];
    if (context.needed[i]) result[i] = b.emit(Slice{starts, limits}, {dy});
    starts[d] = limits[d];
  }
  return result;
}

void Concatenate::reference(const ReferenceCall& call) const {
  const Shape& shape = call.results[0].shape();
  std::size_t outer = 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(dim); ++i) outer *= static_cast<std::size_t>(shape[i]);
  std::byte* out = call.results[0].data;
  for (std::size_t row = 0; row < outer; ++row) {
    for (const ConstArray& operand : call.operands) {
      const std::size_t run = bytes(*operand.type) / outer;
      if (run > 0) std::memcpy(out, operand.data + row * run, run);
      out += run;
    }
  }
}

}  // namespace pmaptrain::ops
