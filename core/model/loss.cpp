// Losses and metrics as equations on one device's rows.
#include "core/model/arithmetic.h"
#include "core/model/model.h"

namespace pmaptrain::model {
namespace {

// log Σ exp(logits) - logits[label], with the largest logit subtracted so that exp never overflows. The shift cancels
// in the value, so no derivative goes through it.
Value softmax_cross_entropy(Builder& b, Value logits, Value labels) {
  const Shape shape = b.type(logits).shape;
  const Value largest = b.emit(ops::StopGradient{}, {b.emit(ops::ReduceMax{{1}}, {logits})});
  const Value shifted = sub(b, logits, broadcast_along(b, largest, shape, 0));
  const Value normaliser = b.emit(ops::Log{}, {sum_from(b, b.emit(ops::Exp{}, {shifted}), 1)});
  const Value one_hot = b.emit(ops::OneHot{shape[1], b.type(logits).dtype}, {labels});
  return sub(b, normaliser, sum_from(b, mul(b, shifted, one_hot), 1));
}

// The mean over the features of one example; `values` is [B, features...].
Value feature_mean(Builder& b, Value values) {
  const Shape shape = b.type(values).shape;
  const Value sum = sum_from(b, values, 1);
  const std::int64_t features = numel(Shape(shape.begin() + 1, shape.end()));
  return features == 1 ? sum : div(b, sum, static_cast<double>(features));
}

Value difference(Builder& b, Value output, Value targets) {
  return sub(b, output, cast(b, targets, b.type(output).dtype));
}

}  // namespace

Value example_losses(Builder& b, const Model& model, Value output, Value targets) {
  if (model.loss == spec::Loss::softmax_cross_entropy) return softmax_cross_entropy(b, output, targets);
  const Value error = difference(b, output, targets);
  return feature_mean(b, mul(b, error, error));
}

Value example_metric(Builder& b, const Model& model, spec::Metric metric, Value output, Value targets) {
  if (metric == spec::Metric::accuracy) {
    const Value correct = b.emit(ops::Eq{}, {b.emit(ops::Argmax{1}, {output}), targets});
    return cast(b, correct, model.dtype);
  }
  // |error| as the larger of it and its negative.
  const Value error = difference(b, output, targets);
  return feature_mean(b, b.emit(ops::Max{}, {error, b.emit(ops::Neg{}, {error})}));
}

std::vector<std::string> measure_names(const Model& model) {
  std::vector<std::string> names{"loss"};
  for (spec::Metric metric : model.metrics) names.push_back(spec::to_string(metric));
  return names;
}

LocalSums local_sums(Builder& b, const Model& model, Value output, Value targets, Value mask) {
  LocalSums sums;
  Value weights;
  {
    const Builder::Scope scope(b, {"loss", model.loss_place});
    weights = cast(b, mask, model.dtype);
    sums.measures.push_back(sum_from(b, mul(b, example_losses(b, model, output, targets), weights), 0));
    sums.count = sum_from(b, weights, 0);
  }
  const Builder::Scope scope(b, {"metrics", model.metrics_place});
  for (spec::Metric metric : model.metrics) {
    sums.measures.push_back(sum_from(b, mul(b, example_metric(b, model, metric, output, targets), weights), 0));
  }
  return sums;
}

}  // namespace pmaptrain::model
