#include "core/equations/division.h"

#include "core/equations/arithmetic.h"

namespace pmaptrain::equations {

Value position_along(Builder& b, AxisSet axes) {
  Value position = b.constant(DType::i32, 0.0);
  for (int axis = 0; axis < static_cast<int>(b.mesh().axes().size()); ++axis) {
    if (!axes.contains(axis)) continue;
    const Value coordinate = b.emit(ops::AxisIndex{AxisSet::of(axis)}, std::span<const Value>());
    position = add(b, mul(b, position, static_cast<double>(b.mesh().size(axis))), coordinate);
  }
  return position;
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

Value gathered_along(Builder& b, Value part, AxisSet axes, std::int64_t dim, std::int64_t count) {
  const Value whole = b.emit(ops::AllGatherInvariant{axes, dim}, {part});
  Shape limits = b.type(whole).shape;
  if (limits[static_cast<std::size_t>(dim)] == count) return whole;
  limits[static_cast<std::size_t>(dim)] = count;
  return b.emit(ops::Slice{Shape(limits.size(), 0), limits}, {whole});
}

Value is_within(Builder& b, const Shape& part, AxisSet axes, std::int64_t count) {
  const std::int64_t own = part.back();
  const Value first = mul(b, position_along(b, axes), static_cast<double>(own));
  const Value column = add(b, b.emit(ops::Iota{DType::i32, {own}, 0}, {}), first);
  const Value within = b.emit(ops::Lt{}, {column, scalar_like(b, column, static_cast<double>(count))});
  return broadcast_along(b, within, part, std::ssize(part) - 1);
}

}  // namespace pmaptrain::equations
