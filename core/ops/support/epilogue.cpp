#include "core/ops/support/epilogue.h"

#include <fmt/format.h>

#include "core/graph/builder.h"
#include "core/ops/elementwise/compare.h"

namespace pmaptrain::ops {

void expect_bias(std::string_view op, const Shape& bias, std::int64_t features) {
  if (bias == Shape{features}) return;
  throw TypeError(6, fmt::format("{}: its result has {} features, but bias is {}", op, features, to_string(bias)),
                  fmt::format("make the bias [{}]", features));
}

Value relu_cotangent(VjpContext& context) {
  Builder& b = context.b;
  const Value dy = *context.cotangents[0];
  const Value zero = b.constant(b.type(dy).dtype, 0);
  return b.emit(Select{}, {b.emit(Gt{}, {context.results[0], zero}), dy, zero});
}

}  // namespace pmaptrain::ops
