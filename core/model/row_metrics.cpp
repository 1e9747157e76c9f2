#include "core/model/row_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/model/arithmetic.h"
#include "core/model/loss.h"
#include "core/model/prediction.h"

namespace pmaptrain::model {
namespace {

namespace metric = spec::metric;

constexpr std::size_t weight_column = 0, actual_column = 1, predicted_column = 2, first_probability = 3;

// The gathered rows of examples that count.
class Examples {
 public:
  Examples(const Model& model, std::span<const float> numbers) : size_(static_cast<std::size_t>(row_size(model))) {
    for (std::size_t at = 0; at < numbers.size(); at += size_) {
      if (numbers[at + weight_column] > 0) examples_.push_back(numbers.subspan(at, size_));
    }
  }

  std::size_t count() const { return examples_.size(); }
  double weight(std::size_t example) const { return static_cast<double>(examples_[example][weight_column]); }
  std::size_t actual(std::size_t example) const { return static_cast<std::size_t>(examples_[example][actual_column]); }
  std::size_t predicted(std::size_t example) const {
    return static_cast<std::size_t>(examples_[example][predicted_column]);
  }
  // The probability of a class; a single output is the probability of class 1.
  float probability(std::size_t example, std::size_t of_class) const {
    const bool single = size_ == first_probability + 1;
    return examples_[example][first_probability + (single ? 0 : of_class)];
  }

 private:
  std::size_t size_;
  std::vector<std::span<const float>> examples_;
};

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

double area_under_curve(const Examples& examples, std::size_t of_class) {
  struct Scored {
    float score = 0;
    double positive = 0, negative = 0;  // the weight, where the example is one
  };
  std::vector<Scored> scored;
  scored.reserve(examples.count());
  for (std::size_t i = 0; i < examples.count(); ++i) {
    const bool positive = examples.actual(i) == of_class;
    const float score = examples.probability(i, of_class);
    if (std::isnan(score)) return undefined;
    scored.push_back({score, positive ? examples.weight(i) : 0, positive ? 0 : examples.weight(i)});
  }
  // Stable, so that sums of weights have one order.
  std::stable_sort(scored.begin(), scored.end(), [](const Scored& a, const Scored& b) { return a.score > b.score; });
  double above = 0, negatives = 0, ordered = 0;
  for (std::size_t i = 0; i < scored.size();) {
    double positive = 0, negative = 0;
    const float score = scored[i].score;
    for (; i < scored.size() && scored[i].score == score; ++i) {
      positive += scored[i].positive;
      negative += scored[i].negative;
    }
    ordered += negative * (above + positive / 2);
    above += positive;
    negatives += negative;
  }
  return above > 0 && negatives > 0 ? ordered / (above * negatives) : undefined;
}

struct RowCall {
  const spec::Metric& metric;
  const Model& model;
  const Examples& examples;
  RowMeasures& measures;
};

// An overload for each metric of rows.
void finish(const metric::RocAuc& metric, const RowCall& call) {
  const std::int64_t classes = call.model.classes();
  std::vector<double> areas;
  for (std::int64_t c = 0; c < classes; ++c) {
    // With two classes, both have the same pairs. A single output is the probability of class 1.
    areas.push_back(area_under_curve(call.examples, classes == 2 ? 1 : static_cast<std::size_t>(c)));
  }
  if (metric.average != metric::Average::none) {
    areas = {std::accumulate(areas.begin(), areas.end(), 0.0) / static_cast<double>(areas.size())};
  }
  const std::vector<std::string> names = measure_names(call.metric, call.model);
  for (std::size_t i = 0; i < areas.size(); ++i) call.measures.values.emplace_back(names[i], areas[i]);
}

void finish(const metric::ConfusionMatrix&, const RowCall& call) {
  const auto classes = static_cast<std::size_t>(call.model.classes());
  const Examples& examples = call.examples;
  ConfusionMatrix matrix(classes, std::vector<double>(classes));
  for (std::size_t i = 0; i < examples.count(); ++i)
    matrix.at(examples.actual(i)).at(examples.predicted(i)) += examples.weight(i);
  call.measures.confusion = std::move(matrix);
}

// [B, 1] of f32.
Value column(Builder& b, Value values) {
  return b.emit(ops::Reshape{{b.type(values).shape.front(), 1}}, {cast(b, values, DType::f32)});
}

}  // namespace

bool needs_rows(const spec::Metric& metric) {
  return std::visit([]<class Kind>(const Kind&) { return is_of_rows<Kind>; }, metric.kind);
}

std::int64_t row_size(const Model& model) {
  if (model.row_metrics.empty()) return 0;
  return static_cast<std::int64_t>(first_probability) + model.output.back();
}

Value gathered_rows(Builder& b, const Model& model, Value output, Value probabilities, Value targets, Value mask) {
  const Builder::Scope scope(b, {"metrics", model.metrics_place});
  const std::optional<std::int64_t> ignored = model.ignored_label();
  const Value weight = column(b, ignored ? counting_weights(b, mask, targets, *ignored) : mask);
  const Value actual = column(b, true_class(b, targets));
  const Value predicted = column(b, predicted_class(b, output, class_threshold(model)));
  return b.emit(ops::Concatenate{1}, {weight, actual, predicted, cast(b, probabilities, DType::f32)});
}

RowMeasures finish_rows(const Model& model, std::span<const float> numbers) {
  RowMeasures measures;
  const Examples examples(model, numbers);
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
