#include "core/model/row_metrics.h"

#include "core/equations/arithmetic.h"
#include "core/losses/equations.h"
#include "core/losses/poisson.h"

namespace pmaptrain::model {

using metrics::Examples;
using metrics::layout_of;
using metrics::RowLayout;

namespace {

// f32 [B, columns].
Value columns(Builder& b, Value values, std::int64_t count) {
  return b.emit(ops::Reshape{{b.type(values).shape.front(), count}}, {cast(b, values, DType::f32)});
}

// [B, T * 3]: of each position the weight, the true class and the predicted class.
Value rows_of_positions(Builder& b, const Model& model, Value predicted, Value targets, Value mask) {
  const Shape shape = b.type(targets).shape;
  Value weights = broadcast_along(b, mask, shape, 0);
  if (const std::optional<std::int64_t> ignored = model.ignored_label()) {
    const Value is_ignored = b.emit(ops::Eq{}, {targets, scalar_like(b, targets, static_cast<double>(*ignored))});
    weights = select(b, is_ignored, scalar_like(b, weights, 0.0), weights);
  }
  const std::int64_t rows = shape.front(), positions = numel(shape) / rows;
  std::vector<Value> parts;
  for (const Value part : {weights, targets, predicted}) {
    const Value flat = columns(b, part, positions);
    parts.push_back(b.emit(ops::Reshape{{rows, positions, 1}}, {flat}));
  }
  return columns(b, b.emit(ops::Concatenate{2}, parts), 3 * positions);
}

}  // namespace

std::int64_t row_size(const Model& model) {
  if (model.row_metrics.empty()) return 0;
  const RowLayout layout = layout_of(model);
  return static_cast<std::int64_t>(layout.size() * layout.positions);
}

Value gathered_rows(Builder& b, const Model& model, Value output, std::optional<Value> chances, Value targets,
                    Value mask) {
  const Builder::Scope scope(b, {"metrics", model.metrics_place});
  const RowLayout layout = layout_of(model);
  const auto outputs = static_cast<std::int64_t>(layout.outputs);
  if (layout.kind == RowLayout::Kind::numbers) {
    const Value values = point_outputs(b, model, output);
    const Value own = model.loss.as<Poisson>() != nullptr ? values : in_units_of_targets(b, model, values);
    const Value errors = b.emit(ops::Abs{}, {difference(b, own, targets)});
    const Value weight = columns(b, mask, 1);
    return b.emit(ops::Concatenate{1}, {weight, columns(b, errors, outputs)});
  }
  if (layout.kind == RowLayout::Kind::labels) {
    const Value weight = columns(b, mask, 1);
    const Value each = cast(b, chances ? *chances : probabilities(b, model, output), DType::f32);
    return b.emit(ops::Concatenate{1}, {weight, each, columns(b, targets, outputs)});
  }
  const Value classes = predicted_class(b, output, class_decision(model));
  if (layout.positions > 1 || model.has_sequences()) return rows_of_positions(b, model, classes, targets, mask);
  const std::optional<std::int64_t> ignored = model.ignored_label();
  const Value weight =
      columns(b, ignored ? counting_weights(b, mask, targets, *ignored, model.labels_of_example()) : mask, 1);
  const Value actual = columns(b, true_class(b, targets), 1);
  const Value predicted = columns(b, classes, 1);
  const Value each = chances ? *chances : probabilities(b, model, whole_outputs(b, model, output));
  return b.emit(ops::Concatenate{1}, {weight, actual, predicted, cast(b, each, DType::f32)});
}

RowMeasures finish_rows(const Model& model, std::span<const float> numbers, std::optional<double> threshold) {
  RowMeasures measures;
  const Examples examples(model, numbers, threshold);
  for (const metrics::Metric& metric : model.row_metrics) metric.kind->finish({metric, model, examples, measures});
  return measures;
}

}  // namespace pmaptrain::model
