#include "core/ops/support/epilogue.h"

#include <fmt/format.h>

#include "core/graph/builder.h"
#include "core/ops/elementwise/compare.h"

namespace pmaptrain::ops {

void expect_bias(std::string_view op, const Type& bias, DType operand, std::int64_t features) {
  if (bias.dtype != operand && !(operand == DType::bf16 && bias.dtype == DType::f32)) {
    throw TypeError(
        6, fmt::format("{}: its operands are {} and bias is {}", op, to_string(operand), to_string(bias.dtype)),
        "cast the bias to the operands' element type; beside bf16 it may be f32");
  }
  if (bias.shape == Shape{features}) return;
  throw TypeError(6, fmt::format("{}: its result has {} features, but bias is {}", op, features, to_string(bias.shape)),
                  fmt::format("make the bias [{}]", features));
}

Value relu_cotangent(VjpContext& context) {
  Builder& b = context.b;
  const Value dy = *context.cotangents[0];
  const Value zero = b.constant(b.type(dy).dtype, 0);
  return b.emit(Select{}, {b.emit(Gt{}, {context.results[0], zero}), dy, zero});
}

}  // namespace pmaptrain::ops
