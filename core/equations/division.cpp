#include "core/equations/division.h"

#include "core/equations/arithmetic.h"

namespace pmaptrain::equations {

Value offset_along(Builder& b, AxisSet axes, std::int64_t own) {
  Value position = b.constant(DType::i32, 0.0);
  for (int axis = 0; axis < static_cast<int>(b.mesh().axes().size()); ++axis) {
    if (!axes.contains(axis)) continue;
    const Value coordinate = b.emit(ops::AxisIndex{AxisSet::of(axis)}, std::span<const Value>());
    position = add(b, mul(b, position, static_cast<double>(b.mesh().size(axis))), coordinate);
  }
  return mul(b, position, static_cast<double>(own));
}

Value varied_along(Builder& b, Value x, AxisSet axes) {
  const DType dtype = b.type(x).dtype;
  if (dtype != DType::bf16) return b.vary(x, axes);
  return cast(b, b.vary(cast(b, x, DType::f32), axes), dtype);
}

Value summed_along(Builder& b, Value part, AxisSet axes) {
  if (b.type(part).dtype == DType::bf16) part = cast(b, part, DType::f32);
  return b.emit(ops::Psum{axes}, {part});
}

Value gathered_along(Builder& b, Value part, AxisSet axes, std::int64_t count) {
  const std::int64_t last = std::ssize(b.type(part).shape) - 1;
  const Value whole = b.emit(ops::AllGatherInvariant{axes, last}, {part});
  Shape limits = b.type(whole).shape;
  if (limits.back() == count) return whole;
  limits.back() = count;
  return b.emit(ops::Slice{Shape(limits.size(), 0), limits}, {whole});
}

}  // namespace pmaptrain::equations
