#include "core/layers/lengths.h"

#include "core/equations/arithmetic.h"

namespace pmaptrain::layers {

using namespace equations;

Lengths Lengths::behind_windows(std::int64_t padding, std::int64_t span, std::int64_t stride) const {
  Lengths made = *this;
  const Change next{padding - span + stride, stride};
  if (next != Change{}) made.changes.push_back(next);
  return made;
}

Lengths Lengths::behind_added(std::int64_t count) const { return behind_windows(count, 1, 1); }

Value Lengths::at(Builder& b, Value in_data) const {
  Value positions = in_data;
  for (const Change& each : changes) {
    if (each.added != 0) positions = add(b, positions, static_cast<double>(each.added));
    if (each.added < 0) positions = b.emit(ops::Max{}, {positions, scalar_like(b, positions, 0.0)});
    if (each.divisor > 1) positions = div(b, positions, static_cast<double>(each.divisor));
  }
  return positions;
}

Value is_inside(Builder& b, Value lengths, const Shape& shape) {
  const Shape rows{shape[0], shape[1]};
  const Value position = broadcast_along(b, b.emit(ops::Iota{DType::i32, {shape[1]}, 0}, {}), rows, 1);
  const Value inside = b.emit(ops::Gt{}, {broadcast_along(b, lengths, rows, 0), position});
  return shape.size() == 2 ? inside : b.emit(ops::Broadcast{shape, {0, 1}}, {inside});
}

Value inside_or(Builder& b, Value lengths, Value x, double otherwise) {
  const Value inside = is_inside(b, lengths, b.type(x).shape);
  return select(b, inside, x, scalar_like(b, x, otherwise));
}

Value last_inside(Builder& b, Value lengths, Value x) {
  const Value before_last = is_inside(b, sub(b, lengths, 1.0), b.type(x).shape);
  const Value last = select(b, before_last, scalar_like(b, x, 0.0), inside_or(b, lengths, x, 0));
  return b.emit(ops::ReduceSum{{1}}, {last});
}

}  // namespace pmaptrain::layers
