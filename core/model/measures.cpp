// The sums for the measures of a step, and the measures from their means.
#include <optional>

#include "core/equations/arithmetic.h"
#include "core/layers/lengths.h"
#include "core/losses/equations.h"
#include "core/model/model.h"

namespace pmaptrain::model {

using layers::inside_or;
using layers::is_inside;
using metrics::ExampleMask;
using metrics::masked;
using metrics::MeasurePart;
using metrics::PlannedMetric;

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

LocalSums local_sums(Builder& b, const Model& model, Value output, Value targets, Value mask, const Numbers& numbers,
                     std::optional<Value> lengths) {
  LocalSums sums;
  ExampleMask rows;
  Value weights{};  // of examples
  std::optional<Value> inside;
  {
    const Builder::Scope scope(b, {"loss", model.loss_place});
    rows.weights = cast(b, mask, model.dtype);
    rows.weighted = model.weighted;
    const Value is_example = b.emit(ops::Gt{}, {mask, scalar_like(b, mask, 0.0)});
    // Statistics of layers are of all examples, also of those without a label that counts.
    const Value examples = model.weighted ? cast(b, is_example, model.dtype) : rows.weights;
    if (const std::optional<std::int64_t> ignored = model.ignored_label()) {
      rows.weights = counting_weights(b, rows.weights, targets, *ignored, model.labels_of_example());
      rows.count = b.emit(ops::Gt{}, {rows.weights, scalar_like(b, rows.weights, 0.0)});
      // A label that does not count need not be a class, as whose number losses and metrics use it.
      targets = select(b, rows.count, targets, scalar_like(b, targets, 0.0));
    } else {
      rows.count = is_example;
    }
    weights = rows.weights;
    if (model.has_padded_numbers()) {
      // Each position has its share of an example. What padding holds, NaN too, has no loss and no gradient.
      const Shape shape = b.type(output).shape;
      inside = is_inside(b, lengths.value(), {shape[0], shape[1]});
      output = inside_or(b, *lengths, output, 0.0);
      targets = inside_or(b, *lengths, targets, 0.0);
      const auto whole = static_cast<double>(model.labels_of_example());
      weights = mul(b, weights, div(b, cast(b, *lengths, model.dtype), whole));
      const double share = static_cast<double>(shape[1]) / whole;
      if (share != 1.0) rows.weights = mul(b, rows.weights, share);
    }
    const Value normalised = normalised_targets(b, model, targets);
    const Value losses = example_losses(b, model, output, normalised, numbers, inside);
    // Metrics take both in units of the targets' standard deviation, which they scale back; logarithms have none.
    if (model.log_targets.empty()) {
      targets = normalised;
    } else {
      output = cast(b, in_units_of_targets(b, model, output), model.dtype);
      targets = cast(b, targets, model.dtype);
    }
    sums.measures.push_back(sum_from(b, masked(b, rows, losses), 0));
    sums.count = sum_from(b, examples, 0);
  }
  const Builder::Scope scope(b, {"metrics", model.metrics_place});
  Value points = model.metrics.empty() ? output : point_outputs(b, model, output);
  if (inside && !model.metrics.empty()) {
    // Where both are 0, there is no error.
    points = inside_or(b, *lengths, points, 0.0);
    targets = inside_or(b, *lengths, targets, 0.0);
  }
  for (const PlannedMetric& metric : model.metrics) {
    for (Value sum : metric.sums(b, points, targets, rows)) sums.measures.push_back(sum);
  }
  if (model.weighted) sums.measures.push_back(sum_from(b, weights, 0));
  return sums;
}

}  // namespace pmaptrain::model
