// Losses of the rows of one device, and the sums for the measures of a step.
#include "core/model/loss.h"

#include <numeric>

#include "core/model/arithmetic.h"
#include "core/model/model.h"

namespace pmaptrain::model {
namespace {

constexpr const char *smoothing_rest = "loss/label_smoothing/rest", *smoothing_share = "loss/label_smoothing/share",
                     *huber_delta = "loss/delta";

struct ExampleLosses {
  Builder& b;
  Value output, targets;
  const Numbers& numbers;

  Value operator()(const spec::SoftmaxCrossEntropy& loss) const {
    std::optional<Smoothing> smoothing;
    if (loss.label_smoothing > 0.0) smoothing = {numbers[smoothing_rest], numbers[smoothing_share]};
    const Value entropy = softmax_cross_entropy(b, output, targets, smoothing);
    if (loss.class_weights.each.empty()) return feature_mean(b, entropy);
    const Value weights = vector_constant(b, b.type(output).dtype, loss.class_weights.each);
    if (!is_floating(b.type(targets).dtype)) {
      return feature_mean(b, mul(b, entropy, b.emit(ops::Gather{}, {weights, targets})));
    }
    const Value probabilities = cast(b, targets, b.type(output).dtype);
    const Value each = broadcast_along(b, weights, b.type(probabilities).shape, 1);
    return mul(b, entropy, sum_from(b, mul(b, probabilities, each), 1));
  }
  // softplus(x) - x t, which is -t log sigmoid(x) - (1 - t) log(1 - sigmoid(x)).
  Value operator()(const spec::SigmoidCrossEntropy& loss) const {
    Value expected = cast(b, targets, b.type(output).dtype);
    if (b.type(expected).shape != b.type(output).shape)
      expected = b.emit(ops::Reshape{b.type(output).shape}, {expected});
    const Value all = softplus(b, output);
    const Value entropy = feature_mean(b, sub(b, all, mul(b, output, expected)));
    if (loss.class_weights.each.empty()) return entropy;
    const Value weights = vector_constant(b, b.type(output).dtype, loss.class_weights.each);
    return mul(b, entropy, b.emit(ops::Gather{}, {weights, targets}));
  }
  Value operator()(const spec::MeanSquaredError&) const {
    const Value error = difference(b, output, targets);
    return feature_mean(b, mul(b, error, error));
  }
  Value operator()(const spec::MeanAbsoluteError&) const {
    return feature_mean(b, b.emit(ops::Abs{}, {difference(b, output, targets)}));
  }
  // With q = min(|e|, delta): q²/2 + delta · (|e| - q).
  Value operator()(const spec::Huber&) const {
    const Value distance = b.emit(ops::Abs{}, {difference(b, output, targets)});
    const Value near = b.emit(ops::Min{}, {distance, numbers[huber_delta]});
    const Value square = mul(b, mul(b, near, near), 0.5);
    const Value far = mul(b, sub(b, distance, near), numbers[huber_delta]);
    return feature_mean(b, add(b, square, far));
  }
};

}  // namespace

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

Value difference(Builder& b, Value output, Value targets) {
  return sub(b, output, cast(b, targets, b.type(output).dtype));
}

namespace {

// One number for each number of a target, for values [B, target...] of f64.
Value for_each_target(Builder& b, const Model& model, Value like, const std::vector<double>& numbers) {
  if (numbers.size() == 1) return scalar_like(b, like, numbers.front());
  const Shape shape = b.type(like).shape;
  const Value vector = b.emit(ops::Reshape{model.target.shape}, {vector_constant(b, DType::f64, numbers)});
  std::vector<std::int64_t> dims(model.target.shape.size());
  std::iota(dims.begin(), dims.end(), 1);
  return b.emit(ops::Broadcast{shape, dims}, {vector});
}

}  // namespace

Value normalised_targets(Builder& b, const Model& model, Value targets) {
  if (!model.target_statistics) return targets;
  const Value exact = cast(b, targets, DType::f64);
  const Value distance = sub(b, exact, for_each_target(b, model, exact, model.target_statistics->mean));
  return cast(b, div(b, distance, for_each_target(b, model, exact, model.target_statistics->std)), model.dtype);
}

Value in_units_of_targets(Builder& b, const Model& model, Value output) {
  if (!model.target_statistics) return output;
  const Value exact = cast(b, output, DType::f64);
  const Value distance = mul(b, exact, for_each_target(b, model, exact, model.target_statistics->std));
  return cast(b, add(b, distance, for_each_target(b, model, exact, model.target_statistics->mean)), model.dtype);
}

std::vector<Number> loss_numbers(const Model& model) {
  if (const auto* softmax = std::get_if<spec::SoftmaxCrossEntropy>(&model.loss)) {
    if (!(softmax->label_smoothing > 0.0)) return {};
    const double share = softmax->label_smoothing / static_cast<double>(model.output.back());
    return {{smoothing_rest, 1.0 - softmax->label_smoothing, model.dtype}, {smoothing_share, share, model.dtype}};
  }
  if (const auto* huber = std::get_if<spec::Huber>(&model.loss)) return {{huber_delta, huber->delta, model.dtype}};
  return {};
}

Value example_losses(Builder& b, const Model& model, Value output, Value targets, const Numbers& numbers) {
  return std::visit(ExampleLosses{b, output, targets, numbers}, model.loss);
}

Value masked(Builder& b, const ExampleMask& rows, Value values) {
  const Shape shape = b.type(values).shape;
  if (rows.weighted) {
    const Value weights = cast(b, rows.weights, b.type(values).dtype);
    values = mul(b, values, shape.size() == 1 ? weights : broadcast_along(b, weights, shape, 0));
  }
  const Value count = shape.size() == 1 ? rows.count : broadcast_along(b, rows.count, shape, 0);
  return select(b, count, values, scalar_like(b, values, 0.0));
}

std::vector<MeasurePart> measure_parts(const Model& model) {
  std::vector<MeasurePart> parts{{"loss", {}}};
  for (const PlannedMetric& metric : model.metrics) {
    parts.insert(parts.end(), metric.parts.begin(), metric.parts.end());
  }
  if (model.weighted) parts.push_back({"weight", {}});
  return parts;
}

std::vector<std::pair<std::string, double>> finish_measures(const Model& model,
                                                            std::span<const std::vector<double>> means) {
  std::vector<std::vector<double>> weighted;
  if (model.weighted) {
    // Means over examples become weighted means.
    const double weight = means.back().front();
    weighted.assign(means.begin(), means.end());
    for (std::vector<double>& part : weighted) {
      for (double& mean : part) mean /= weight;
    }
    means = weighted;
  }
  std::vector<std::pair<std::string, double>> measures{{"loss", means.front().front()}};
  std::size_t at = 1;
  for (const PlannedMetric& metric : model.metrics) {
    const std::vector<double> values = metric.finish(means.subspan(at, metric.parts.size()));
    for (std::size_t i = 0; i < values.size(); ++i) measures.emplace_back(metric.names[i], values[i]);
    at += metric.parts.size();
  }
  return measures;
}

LocalSums local_sums(Builder& b, const Model& model, Value output, Value targets, Value mask, const Numbers& numbers) {
  LocalSums sums;
  ExampleMask rows;
  {
    const Builder::Scope scope(b, {"loss", model.loss_place});
    rows.weights = cast(b, mask, model.dtype);
    rows.weighted = model.weighted;
    rows.count = b.emit(ops::Gt{}, {mask, scalar_like(b, mask, 0.0)});
    targets = normalised_targets(b, model, targets);
    const Value losses = example_losses(b, model, output, targets, numbers);
    sums.measures.push_back(sum_from(b, masked(b, rows, losses), 0));
    sums.count = sum_from(b, model.weighted ? cast(b, rows.count, model.dtype) : rows.weights, 0);
  }
  const Builder::Scope scope(b, {"metrics", model.metrics_place});
  for (const PlannedMetric& metric : model.metrics) {
    for (Value sum : metric.sums(b, output, targets, rows)) sums.measures.push_back(sum);
  }
  if (model.weighted) sums.measures.push_back(sum_from(b, rows.weights, 0));
  return sums;
}

}  // namespace pmaptrain::model
