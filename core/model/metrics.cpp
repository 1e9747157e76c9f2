// Metrics: the sums that each is made from, and what makes its values of them.
#include <algorithm>
#include <cmath>

#include "core/model/arithmetic.h"
#include "core/model/loss.h"
#include "core/model/model.h"

namespace pmaptrain::model {
namespace {

namespace metric = spec::metric;

using Means = std::span<const std::vector<double>>;
using PerExample = std::function<Value(Builder& b, Value output, Value targets)>;

// The mean of a value of each example, [B].
PlannedMetric mean_of(const std::string& name, PerExample value, double (*finish)(double) = nullptr) {
  PlannedMetric metric{{name}, {{name, {}}}, {}, {}};
  metric.sums = [value = std::move(value)](Builder& b, Value output, Value targets, const Rows& rows) {
    return std::vector<Value>{sum_from(b, masked(b, rows, value(b, output, targets)), 0)};
  };
  metric.finish = [finish](Means means) {
    const double mean = means.front().front();
    return std::vector<double>{finish == nullptr ? mean : finish(mean)};
  };
  return metric;
}

// The class that the model says, i32 [B]: that of the largest output, or whether the only one is above 0.
Value said_class(Builder& b, Value output, bool binary) {
  if (!binary) return b.emit(ops::Argmax{1}, {output});
  const Value above = b.emit(ops::Gt{}, {output, scalar_like(b, output, 0.0)});
  const Value rows = b.emit(ops::Reshape{{b.type(output).shape.front()}}, {above});
  return cast(b, rows, DType::i32);
}

// The class that is right, i32 [B]: the label, or the likeliest class.
Value right_class(Builder& b, Value targets) {
  return b.type(targets).shape.size() == 1 ? targets : b.emit(ops::Argmax{1}, {targets});
}

PlannedMetric accuracy(const std::string& name, bool binary) {
  return mean_of(name, [binary](Builder& b, Value output, Value targets) {
    const Value said = said_class(b, output, binary);
    const Value correct = b.emit(ops::Eq{}, {said, right_class(b, targets)});
    return cast(b, correct, b.type(output).dtype);
  });
}

PlannedMetric top_k_accuracy(const std::string& name, std::int64_t k) {
  return mean_of(name, [k](Builder& b, Value output, Value targets) {
    const Value best = b.emit_all(ops::TopK{k}, std::vector{output})[1];
    const Value wanted = broadcast_along(b, right_class(b, targets), b.type(best).shape, 0);
    return sum_from(b, cast(b, b.emit(ops::Eq{}, {best, wanted}), b.type(output).dtype), 1);
  });
}

// Precision, recall and F1 are quotients for each class: of the hits, and of how often the class was said, was right,
// or both, in which hits count twice. A class of which nothing can be said has 0. Their mean leaves out classes that
// were neither said nor right, of which no model can be right or wrong; of labels 0 and 1 it is class 1's alone. So do
// scikit-learn and torchmetrics.
//
// `of` is how often a class counts, from how often it was said and was right.
PlannedMetric class_quotient(const std::string& name, metric::Average average, const Model& model,
                             double (*of)(double said, double right)) {
  const bool binary = model.is_binary(), each = average == metric::Average::none;
  const std::int64_t classes = binary ? 2 : model.output.front();
  const std::string prefix = each ? name + ".each" : name;
  PlannedMetric planned{
      {}, {{prefix + ".hits", {classes}}, {prefix + ".said", {classes}}, {prefix + ".right", {classes}}}, {}, {}};
  for (std::int64_t c = 0; each && c < classes; ++c) planned.names.push_back(name + "_" + std::to_string(c));
  if (!each) planned.names.push_back(name);
  planned.sums = [classes, binary](Builder& b, Value output, Value targets, const Rows& rows) {
    const Value said = said_class(b, output, binary);
    const Value right = right_class(b, targets);
    const Value hit = cast(b, b.emit(ops::Eq{}, {said, right}), b.type(rows.weights).dtype);
    const ops::ScatterAdd count{classes};
    const Value hits = b.emit(count, {right, masked(b, rows, hit)});
    const Value times_said = b.emit(count, {said, rows.weights});
    return std::vector{hits, times_said, b.emit(count, {right, rows.weights})};
  };
  planned.finish = [of, each, binary](Means means) {
    std::vector<double> quotients;
    double sum = 0, present = 0;
    for (std::size_t c = 0; c < means[0].size(); ++c) {
      const double hits = means[0][c], said = means[1][c], right = means[2][c];
      const double all = of(said, right);
      quotients.push_back(all == 0 ? 0 : hits / all);
      if (said + right == 0) continue;
      sum += quotients.back();
      ++present;
    }
    if (each) return quotients;
    if (binary) return std::vector<double>{quotients[1]};
    return std::vector<double>{present == 0 ? 0 : sum / present};
  };
  return planned;
}

// 1 - Σ (y - t)² / Σ (t - mean t)², by output, with the variance as mean t² - (mean t)². Its sums are of f64, in which
// the square of an f32 is exact: those of f32 leave nothing of a variance beside a mean some thousand times as large.
PlannedMetric r2(const std::string& name, std::int64_t outputs) {
  const Shape shape = {outputs};
  PlannedMetric metric{
      {name}, {{name + ".error", shape}, {name + ".target", shape, true}, {name + ".square", shape, true}}, {}, {}};
  metric.sums = [outputs](Builder& b, Value output, Value targets, const Rows& rows) {
    const ops::Reshape flat{{b.type(output).shape.front(), outputs}};
    const auto sum = [&](Value values) { return b.emit(ops::ReduceSum{{0}}, {masked(b, rows, values)}); };
    const Value error = b.emit(flat, {difference(b, output, targets)});
    const Value target = cast(b, b.emit(flat, {targets}), DType::f64);
    const Value errors = sum(mul(b, error, error));
    const Value total = sum(target);
    return std::vector{errors, total, sum(mul(b, target, target))};
  };
  metric.finish = [](Means means) {
    double sum = 0;
    for (std::size_t i = 0; i < means[0].size(); ++i) {
      const double variance = means[2][i] - means[1][i] * means[1][i];
      const double constant = means[0][i] > 0 ? 0.0 : 1.0 - means[0][i];
      // What the rounding of equal targets' sums can leave.
      const bool varies = variance > 1e-13 * means[2][i];
      sum += varies ? 1.0 - means[0][i] / variance : constant;
    }
    return std::vector<double>{sum / static_cast<double>(means[0].size())};
  };
  return metric;
}

struct Planner {
  const Model& model;
  std::string name;

  PlannedMetric operator()(const metric::Accuracy&) const { return accuracy(name, model.is_binary()); }
  PlannedMetric operator()(const metric::TopKAccuracy& top) const { return top_k_accuracy(name, top.k); }
  PlannedMetric operator()(const metric::Precision& precision) const {
    return class_quotient(name, precision.average, model, [](double said, double) { return said; });
  }
  PlannedMetric operator()(const metric::Recall& recall) const {
    return class_quotient(name, recall.average, model, [](double, double right) { return right; });
  }
  PlannedMetric operator()(const metric::F1& f1) const {
    return class_quotient(name, f1.average, model, [](double said, double right) { return (said + right) / 2; });
  }
  PlannedMetric operator()(const metric::Perplexity&) const {
    return mean_of(
        name, [](Builder& b, Value output, Value targets) { return softmax_cross_entropy(b, output, targets); },
        [](double mean) { return std::exp(mean); });
  }
  PlannedMetric operator()(const metric::MeanAbsoluteError&) const {
    return mean_of(name, [](Builder& b, Value output, Value targets) {
      return feature_mean(b, b.emit(ops::Abs{}, {difference(b, output, targets)}));
    });
  }
  PlannedMetric operator()(const metric::MeanSquaredError&) const {
    return mean_of(name, [](Builder& b, Value output, Value targets) {
      const Value error = difference(b, output, targets);
      return feature_mean(b, mul(b, error, error));
    });
  }
  PlannedMetric operator()(const metric::R2&) const { return r2(name, numel(model.target.shape)); }
};

}  // namespace

PlannedMetric plan_metric(const spec::Metric& metric, const Model& model) {
  return std::visit(Planner{model, spec::to_string(metric)}, metric.kind);
}

}  // namespace pmaptrain::model
