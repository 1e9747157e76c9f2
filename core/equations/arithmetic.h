// Short names for the arithmetic of layers, losses and optimizers. Operands have equal types, or one is a scalar.
//
// Each call appends an equation. C++ does not define the order in which arguments are evaluated, so at most one
// argument of a call may itself append; otherwise the text of a program would depend on the compiler.
#pragma once

#include <utility>

#include "core/graph/builder.h"
#include "core/ops/list.h"

namespace pmaptrain::equations {

inline Value add(Builder& b, Value x, Value y) { return b.emit(ops::Add{}, {x, y}); }
inline Value sub(Builder& b, Value x, Value y) { return b.emit(ops::Sub{}, {x, y}); }
inline Value mul(Builder& b, Value x, Value y) { return b.emit(ops::Mul{}, {x, y}); }
inline Value div(Builder& b, Value x, Value y) { return b.emit(ops::Div{}, {x, y}); }

inline Value scalar_like(Builder& b, Value x, double value) { return b.constant(b.type(x).dtype, value); }
inline Value add(Builder& b, Value x, double y) { return add(b, x, scalar_like(b, x, y)); }
inline Value sub(Builder& b, Value x, double y) { return sub(b, x, scalar_like(b, x, y)); }
inline Value mul(Builder& b, Value x, double y) { return mul(b, x, scalar_like(b, x, y)); }
inline Value div(Builder& b, Value x, double y) { return div(b, x, scalar_like(b, x, y)); }

inline Value select(Builder& b, Value predicate, Value on_true, Value on_false) {
  return b.emit(ops::Select{}, {predicate, on_true, on_false});
}

// `x` itself if it already has this element type.
inline Value cast(Builder& b, Value x, DType dtype) {
  return b.type(x).dtype == dtype ? x : b.emit(ops::Cast{dtype}, {x});
}

// The sum over all dimensions from `first` on; `x` itself if there are none.
inline Value sum_from(Builder& b, Value x, std::size_t first) {
  std::vector<std::int64_t> dims;
  for (std::size_t i = first; i < b.type(x).shape.size(); ++i) dims.push_back(static_cast<std::int64_t>(i));
  return dims.empty() ? x : b.emit(ops::ReduceSum{std::move(dims)}, {x});
}

// Broadcasts a vector to `shape`; dimension `dim` of the result is the dimension of the vector.
inline Value broadcast_along(Builder& b, Value vector, Shape shape, std::int64_t dim) {
  return b.emit(ops::Broadcast{std::move(shape), {dim}}, {vector});
}

// log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|)), which does not overflow; its derivative at 0 is 1/2.
inline Value softplus(Builder& b, Value x) {
  const Value positive = b.emit(ops::Max{}, {x, scalar_like(b, x, 0.0)});
  const Value far = b.emit(ops::Neg{}, {b.emit(ops::Abs{}, {x})});
  const Value rest = b.emit(ops::Log1p{}, {b.emit(ops::Exp{}, {far})});
  return add(b, positive, rest);
}

// x, below 0 times `slope`.
inline Value leaky_relu(Builder& b, Value x, double slope) {
  const Value above = b.emit(ops::Ge{}, {x, scalar_like(b, x, 0.0)});
  return select(b, above, x, mul(b, x, slope));
}

// x, below 0 alpha (exp(x) - 1). expm1 is applied to min(x, 0), because it and its cotangent could overflow for large
// x.
inline Value elu(Builder& b, Value x, double alpha) {
  const Value zero = scalar_like(b, x, 0.0);
  const Value above = b.emit(ops::Gt{}, {x, zero});
  const Value below = select(b, above, zero, x);
  return select(b, above, x, mul(b, b.emit(ops::Expm1{}, {below}), alpha));
}

// 1 / (1 + exp(-x)) = (1 + tanh(x / 2)) / 2. Neither this form nor its derivative overflows.
inline Value sigmoid(Builder& b, Value x) {
  const Value t = b.emit(ops::Tanh{}, {mul(b, x, 0.5)});
  return add(b, mul(b, t, 0.5), 0.5);
}

// Along the last dimension. The maximum is subtracted so that exp does not overflow; the shift cancels, so it needs no
// gradient.
inline Value softmax(Builder& b, Value x) {
  const Shape shape = b.type(x).shape;
  const std::vector<std::int64_t> last = {static_cast<std::int64_t>(shape.size()) - 1};
  std::vector<std::int64_t> others;
  for (std::int64_t d = 0; d < last[0]; ++d) others.push_back(d);
  const Value largest = b.emit(ops::StopGradient{}, {b.emit(ops::ReduceMax{last}, {x})});
  const Value shifted = sub(b, x, b.emit(ops::Broadcast{shape, others}, {largest}));
  const Value exponentials = b.emit(ops::Exp{}, {shifted});
  const Value total = b.emit(ops::ReduceSum{last}, {exponentials});
  return div(b, exponentials, b.emit(ops::Broadcast{shape, others}, {total}));
}

inline Value vector_constant(Builder& b, DType dtype, const std::vector<double>& values) {
  return b.emit(ops::Constant{dtype, {std::ssize(values)}, 0, values}, {});
}

}  // namespace pmaptrain::equations
