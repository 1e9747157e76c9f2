#include "core/model/row_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/equations/arithmetic.h"
#include "core/model/loss.h"
#include "core/model/prediction.h"

namespace pmaptrain::model {
namespace {

namespace metric = spec::metric;

// Where a row has its numbers, of which each position of a sequence has some.
struct Layout {
  enum class Kind { classes, labels, numbers } kind = Kind::classes;
  std::size_t outputs = 0;    // probabilities, labels or numbers of a target
  std::size_t positions = 1;  // of a sequence, without probabilities

  std::size_t size() const {
    return kind == Kind::classes ? 3 + outputs : kind == Kind::labels ? 1 + 2 * outputs : 1 + outputs;
  }
};

Layout layout_of(const Model& model) {
  const auto outputs = static_cast<std::size_t>(model.output.empty() ? 1 : model.output.back());
  if (model.is_multi_label()) return {Layout::Kind::labels, outputs};
  if (!is_classifier(model)) return {Layout::Kind::numbers, static_cast<std::size_t>(numel(model.target.shape))};
  if (model.has_sequences()) return {Layout::Kind::classes, 0, static_cast<std::size_t>(numel(model.target.shape))};
  return {Layout::Kind::classes, outputs};
}

constexpr std::size_t weight_column = 0, actual_column = 1, predicted_column = 2, first_probability = 3;

// The gathered rows of examples, or of positions, that count.
class Examples {
 public:
  // With a threshold class 1 of two is predicted above this probability, instead of what the rows say.
  Examples(const Model& model, std::span<const float> numbers, std::optional<double> threshold)
      : layout_(layout_of(model)), threshold_(threshold) {
    const std::size_t size = layout_.size();
    for (std::size_t at = 0; at + size <= numbers.size(); at += size) {
      if (numbers[at + weight_column] > 0) examples_.push_back(numbers.subspan(at, size));
    }
  }

  std::size_t count() const { return examples_.size(); }
  double weight(std::size_t example) const { return static_cast<double>(examples_[example][weight_column]); }
  std::size_t actual(std::size_t example) const { return static_cast<std::size_t>(examples_[example][actual_column]); }
  std::size_t predicted(std::size_t example) const {
    if (threshold_) return static_cast<double>(probability(example, 1)) > *threshold_ ? 1 : 0;
    return static_cast<std::size_t>(examples_[example][predicted_column]);
  }
  // Whether an example has a class or label.
  bool has(std::size_t example, std::size_t label) const {
    if (layout_.kind == Layout::Kind::labels) return examples_[example][1 + layout_.outputs + label] > 0.5F;
    return actual(example) == label;
  }
  // The probability of a class or label; a single output is the probability of class 1.
  float probability(std::size_t example, std::size_t label) const {
    if (layout_.kind == Layout::Kind::labels) return examples_[example][1 + label];
    return examples_[example][first_probability + (layout_.outputs == 1 ? 0 : label)];
  }
  // The absolute error of a number of a target.
  float error(std::size_t example, std::size_t number) const { return examples_[example][1 + number]; }

 private:
  Layout layout_;
  std::optional<double> threshold_;
  std::vector<std::span<const float>> examples_;
};

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

// A decision that a score ranks: its weight, where it is positive and where it is negative.
struct Scored {
  float score = 0;
  double positive = 0, negative = 0;
};

Scored scored(const Examples& examples, std::size_t example, std::size_t label) {
  const double weight = examples.weight(example);
  const bool positive = examples.has(example, label);
  return {examples.probability(example, label), positive ? weight : 0, positive ? 0 : weight};
}

// Calls `use(positive, negative)` with the sums of weights of equal scores, from the highest on. Returns false if a
// score is NaN.
template <class Use>
bool for_each_threshold(std::vector<Scored> all, Use&& use) {
  if (std::any_of(all.begin(), all.end(), [](const Scored& one) { return std::isnan(one.score); })) return false;
  // Stable, so that sums of weights have one order.
  std::stable_sort(all.begin(), all.end(), [](const Scored& a, const Scored& b) { return a.score > b.score; });
  for (std::size_t i = 0; i < all.size();) {
    double positive = 0, negative = 0;
    const float score = all[i].score;
    for (; i < all.size() && all[i].score == score; ++i) {
      positive += all[i].positive;
      negative += all[i].negative;
    }
    use(positive, negative);
  }
  return true;
}

double area_under_curve(std::vector<Scored> all) {
  double above = 0, negatives = 0, ordered = 0;
  const bool is_known = for_each_threshold(std::move(all), [&](double positive, double negative) {
    ordered += negative * (above + positive / 2);
    above += positive;
    negatives += negative;
  });
  return is_known && above > 0 && negatives > 0 ? ordered / (above * negatives) : undefined;
}

double average_precision(std::vector<Scored> all) {
  double positives = 0, predicted = 0, sum = 0;
  const bool is_known = for_each_threshold(std::move(all), [&](double positive, double negative) {
    positives += positive;
    predicted += positive + negative;
    sum += positive * positives / predicted;
  });
  return is_known && positives > 0 ? sum / positives : undefined;
}

struct RowCall {
  const spec::Metric& metric;
  const Model& model;
  const Examples& examples;
  RowMeasures& measures;
};

using Curve = double (*)(std::vector<Scored>);

// The value of a curve for each class or label, and their weights.
void finish_curve(metric::Average average, const RowCall& call, Curve curve) {
  const Examples& examples = call.examples;
  const bool each = average == metric::Average::none, multi = call.model.is_multi_label();
  const auto classes = static_cast<std::size_t>(call.model.measured_classes());
  // Of two classes the second alone, whose probability a single output is.
  const bool only_second = classes == 2 && !multi && !each;
  std::vector<Scored> group;  // one at a time
  std::vector<double> weights, values;
  std::vector<bool> are_numbers;  // the probabilities of the group
  const auto add = [&](std::size_t example, std::size_t label) {
    group.push_back(scored(examples, example, label));
    weights.back() += average == metric::Average::weighted ? group.back().positive : 0;
  };
  const auto end_group = [&] {
    are_numbers.push_back(
        std::none_of(group.begin(), group.end(), [](const Scored& s) { return std::isnan(s.score); }));
    values.push_back(curve(std::exchange(group, {})));
  };
  if (average == metric::Average::samples) {
    for (std::size_t i = 0; i < examples.count(); ++i) {
      weights.push_back(examples.weight(i));
      for (std::size_t c = 0; c < classes; ++c) add(i, c);
      end_group();
    }
  } else {
    const bool together = average == metric::Average::micro;
    for (std::size_t c = only_second ? 1 : 0; c < classes; ++c) {
      if (!together || weights.empty()) weights.push_back(average == metric::Average::weighted ? 0 : 1);
      for (std::size_t i = 0; i < examples.count(); ++i) add(i, c);
      if (!together || c + 1 == classes) end_group();
    }
  }
  const std::vector<std::string> names = measure_names(call.metric, call.model);
  if (each) {
    for (std::size_t i = 0; i < values.size(); ++i) call.measures.values.emplace_back(names[i], values[i]);
    return;
  }
  double sum = 0, all = 0;
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (multi && are_numbers[i] && std::isnan(values[i])) {
      ++left_out;
      continue;
    }
    sum += weights[i] * values[i];
    all += weights[i];
  }
  call.measures.values.emplace_back(names.front(), all > 0 ? sum / all : undefined);
  if (left_out > 0) call.measures.values.emplace_back(names.front() + "_left_out", static_cast<double>(left_out));
}

// An overload for each metric of rows.
void finish(const metric::RocAuc& metric, const RowCall& call) { finish_curve(metric.average, call, area_under_curve); }
void finish(const metric::AveragePrecision& metric, const RowCall& call) {
  finish_curve(metric.average, call, average_precision);
}

// The middle of the errors of each number of a target, or the mean of the two in the middle.
void finish(const metric::MedianAbsoluteError&, const RowCall& call) {
  const std::int64_t numbers = numel(call.model.target.shape);
  double sum = 0;
  for (std::int64_t n = 0; n < numbers; ++n) {
    std::vector<double> errors;
    for (std::size_t i = 0; i < call.examples.count(); ++i)
      errors.push_back(static_cast<double>(call.examples.error(i, static_cast<std::size_t>(n))));
    const bool is_known = std::none_of(errors.begin(), errors.end(), [](double error) { return std::isnan(error); });
    if (!is_known || errors.empty()) {
      sum = undefined;
      break;
    }
    std::sort(errors.begin(), errors.end());
    const std::size_t half = errors.size() / 2;
    sum += errors.size() % 2 == 1 ? errors[half] : (errors[half - 1] + errors[half]) / 2;
  }
  call.measures.values.emplace_back(measure_names(call.metric, call.model).front(), sum / static_cast<double>(numbers));
}

void finish(const metric::ConfusionMatrix&, const RowCall& call) {
  const auto classes = static_cast<std::size_t>(call.model.classes());
  const Examples& examples = call.examples;
  ConfusionMatrix matrix(classes, std::vector<double>(classes));
  for (std::size_t i = 0; i < examples.count(); ++i)
    matrix.at(examples.actual(i)).at(examples.predicted(i)) += examples.weight(i);
  call.measures.confusion = std::move(matrix);
}

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

bool needs_rows(const spec::Metric& metric) {
  return std::visit([]<class Kind>(const Kind&) { return is_of_rows<Kind>; }, metric.kind);
}

std::int64_t row_size(const Model& model) {
  if (model.row_metrics.empty()) return 0;
  const Layout layout = layout_of(model);
  return static_cast<std::int64_t>(layout.size() * layout.positions);
}

Value gathered_rows(Builder& b, const Model& model, Value output, Value probabilities, Value targets, Value mask) {
  const Builder::Scope scope(b, {"metrics", model.metrics_place});
  const Layout layout = layout_of(model);
  const auto outputs = static_cast<std::int64_t>(layout.outputs);
  if (layout.kind == Layout::Kind::numbers) {
    const Value values = point_outputs(b, model, output);
    const Value own =
        std::holds_alternative<spec::Poisson>(model.loss) ? values : in_units_of_targets(b, model, values);
    const Value errors = b.emit(ops::Abs{}, {difference(b, own, targets)});
    const Value weight = columns(b, mask, 1);
    return b.emit(ops::Concatenate{1}, {weight, columns(b, errors, outputs)});
  }
  if (layout.kind == Layout::Kind::labels) {
    const Value weight = columns(b, mask, 1);
    const Value chances = cast(b, probabilities, DType::f32);
    return b.emit(ops::Concatenate{1}, {weight, chances, columns(b, targets, outputs)});
  }
  const Value classes = predicted_class(b, output, class_decision(model));
  if (layout.positions > 1 || model.has_sequences()) return rows_of_positions(b, model, classes, targets, mask);
  const std::optional<std::int64_t> ignored = model.ignored_label();
  const Value weight = columns(b, ignored ? counting_weights(b, mask, targets, *ignored) : mask, 1);
  const Value actual = columns(b, true_class(b, targets), 1);
  const Value predicted = columns(b, classes, 1);
  return b.emit(ops::Concatenate{1}, {weight, actual, predicted, cast(b, probabilities, DType::f32)});
}

RowMeasures finish_rows(const Model& model, std::span<const float> numbers, std::optional<double> threshold) {
  RowMeasures measures;
  const Examples examples(model, numbers, threshold);
  for (const spec::Metric& metric : model.row_metrics) {
    const RowCall call{metric, model, examples, measures};
    std::visit(
        [&]<class Kind>(const Kind& kind) {
          if constexpr (is_of_rows<Kind>) finish(kind, call);
        },
        metric.kind);
  }
  return measures;
}

}  // namespace pmaptrain::model
