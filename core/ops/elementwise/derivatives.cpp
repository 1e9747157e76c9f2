#include "core/ops/elementwise/derivatives.h"

#include "core/ops/reduce/reduce.h"
#include "core/ops/reshape/reshape.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {

Value fit_to_operand(Builder& b, Value cotangent, Value operand) {
  const Shape& shape = b.type(cotangent).shape;
  if (shape == b.type(operand).shape) return cotangent;
  if (shape.size() <= max_rank) return b.emit(ReduceSum{all_dims(shape)}, {cotangent});
  const Value row = b.emit(Reshape{{numel(shape)}}, {cotangent});
  return b.emit(ReduceSum{{0}}, {row});
}

}  // namespace pmaptrain::ops
