#include "core/losses/equations.h"

#include <numeric>

#include "core/equations/arithmetic.h"

namespace pmaptrain::losses {

using namespace equations;

// log Σ exp(logits) - Σ t · logits, with the largest logit subtracted so that exp never overflows. The shift cancels
// in the value, so it needs no gradient.
Value softmax_cross_entropy(Builder& b, Value logits, Value labels, std::optional<Smoothing> smoothing) {
  const Shape shape = b.type(logits).shape;
  const std::size_t classes = shape.size() - 1;  // the last dimension
  std::vector<std::int64_t> others(classes);
  std::iota(others.begin(), others.end(), 0);
  const Value largest = b.emit(ops::StopGradient{}, {b.emit(ops::ReduceMax{{std::ssize(others)}}, {logits})});
  const Value shifted = sub(b, logits, b.emit(ops::Broadcast{shape, others}, {largest}));
  const Value normaliser = b.emit(ops::Log{}, {sum_from(b, b.emit(ops::Exp{}, {shifted}), classes)});
  const bool one_label = b.type(labels).shape.size() == classes;
  Value distribution = one_label ? b.emit(ops::OneHot{shape[classes], b.type(logits).dtype}, {labels})
                                 : cast(b, labels, b.type(logits).dtype);
  if (smoothing) distribution = add(b, mul(b, distribution, smoothing->rest), smoothing->share);
  return sub(b, normaliser, sum_from(b, mul(b, shifted, distribution), classes));
}

Value feature_mean(Builder& b, Value values) {
  const Shape shape = b.type(values).shape;
  const Value sum = sum_from(b, values, 1);
  const std::int64_t features = numel(Shape(shape.begin() + 1, shape.end()));
  return features == 1 ? sum : div(b, sum, static_cast<double>(features));
}

Value position_mean(Builder& b, Value values, std::optional<std::int64_t> ignored_label) {
  return ignored_label ? values : feature_mean(b, values);
}

Value counting_weights(Builder& b, Value weights, Value labels, std::int64_t ignored_label, std::int64_t positions) {
  const Shape shape = b.type(labels).shape;
  if (shape.size() > 1) {
    const Value share = div(b, weights, static_cast<double>(positions));
    weights = broadcast_along(b, share, shape, 0);
  }
  const Value ignored = b.emit(ops::Eq{}, {labels, scalar_like(b, labels, static_cast<double>(ignored_label))});
  return select(b, ignored, scalar_like(b, weights, 0.0), weights);
}

Value difference(Builder& b, Value output, Value targets) {
  return sub(b, output, cast(b, targets, b.type(output).dtype));
}

Value of_features(Builder& b, Value like, const std::vector<double>& weights) {
  return broadcast_along(b, vector_constant(b, b.type(like).dtype, weights), b.type(like).shape, 1);
}

Value targets_like(Builder& b, Value output, Value targets) {
  const Value expected = cast(b, targets, b.type(output).dtype);
  return b.type(expected).shape == b.type(output).shape ? expected
                                                        : b.emit(ops::Reshape{b.type(output).shape}, {expected});
}

}  // namespace pmaptrain::losses
