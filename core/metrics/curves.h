// Areas under curves of ranked decisions.
//
// roc_auc equals scikit-learn's exactly: of all pairs of an example of the class and an example of another class, the
// fraction in which the first has the higher probability of the class; equal probabilities count half. With several
// classes, the area is computed for each class against the rest. If all examples or none have a class, its area is NaN,
// and so is the mean over the classes. Of several labels the mean is over the others, and "roc_auc_left_out" is their
// number, where there are some. average_precision is Σ (recall - recall before) · precision over the thresholds.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/metrics/rows.h"

namespace pmaptrain::metrics {

// A decision that a score ranks: its weight, where it is positive and where it is negative.
struct Scored {
  float score = 0;
  double positive = 0, negative = 0;
};

inline Scored scored(const Examples& examples, std::size_t example, std::size_t label) {
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

inline double area_under_curve(std::vector<Scored> all) {
  double above = 0, negatives = 0, ordered = 0;
  const bool is_known = for_each_threshold(std::move(all), [&](double positive, double negative) {
    ordered += negative * (above + positive / 2);
    above += positive;
    negatives += negative;
  });
  return is_known && above > 0 && negatives > 0 ? ordered / (above * negatives) : undefined_value;
}

inline double average_precision(std::vector<Scored> all) {
  double positives = 0, predicted = 0, sum = 0;
  const bool is_known = for_each_threshold(std::move(all), [&](double positive, double negative) {
    positives += positive;
    predicted += positive + negative;
    sum += positive * positives / predicted;
  });
  return is_known && positives > 0 ? sum / positives : undefined_value;
}

using Curve = double (*)(std::vector<Scored>);

// The value of a curve for each class or label, and their weights.
inline void finish_curve(Average average, const RowCall& call, Curve curve) {
  const Examples& examples = call.examples;
  const bool each = average == Average::none, multi = call.objective.is_multi_label();
  const auto classes = static_cast<std::size_t>(call.objective.measured_classes());
  // Of two classes the second alone, whose probability a single output is.
  const bool only_second = classes == 2 && !multi && !each;
  std::vector<Scored> group;  // one at a time
  std::vector<double> weights, values;
  std::vector<bool> are_numbers;  // the probabilities of the group
  const auto add = [&](std::size_t example, std::size_t label) {
    group.push_back(scored(examples, example, label));
    weights.back() += average == Average::weighted ? group.back().positive : 0;
  };
  const auto end_group = [&] {
    are_numbers.push_back(
        std::none_of(group.begin(), group.end(), [](const Scored& s) { return std::isnan(s.score); }));
    values.push_back(curve(std::exchange(group, {})));
  };
  if (average == Average::samples) {
    for (std::size_t i = 0; i < examples.count(); ++i) {
      weights.push_back(examples.weight(i));
      for (std::size_t c = 0; c < classes; ++c) add(i, c);
      end_group();
    }
  } else {
    const bool together = average == Average::micro;
    for (std::size_t c = only_second ? 1 : 0; c < classes; ++c) {
      if (!together || weights.empty()) weights.push_back(average == Average::weighted ? 0 : 1);
      for (std::size_t i = 0; i < examples.count(); ++i) add(i, c);
      if (!together || c + 1 == classes) end_group();
    }
  }
  const std::vector<std::string> names = measure_names(call.metric, call.objective);
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
  call.measures.values.emplace_back(names.front(), all > 0 ? sum / all : undefined_value);
  if (left_out > 0) call.measures.values.emplace_back(names.front() + "_left_out", static_cast<double>(left_out));
}

struct RocAuc {
  static constexpr Average usual = Average::macro;
  Average average = usual;

  static constexpr std::optional<Mode> better = Mode::max;
  static constexpr Compares compares = Compares::one_label;

  static Declaration<RocAuc> declaration() {
    return declare::kind<RocAuc>(
        {.path = "roc_auc",
         .meaning =
             "For labels, in evaluations alone: the area under the ROC curve, exactly as scikit-learn's "
             "roc_auc_score computes it of the probabilities that predict gives; of more than two classes each "
             "against the rest. null for a class of which all examples are, or none is, and then for their mean; "
             "of several labels the mean is of the others, and roc_auc_left_out counts these.",
         .example = "metrics: [accuracy, roc_auc]"},
        field(&RocAuc::average, average_key("As for precision; of two classes class 1 alone, unless none.")));
  }
  void finish(const RowCall& call) const { finish_curve(average, call, area_under_curve); }
};

struct AveragePrecision {
  static constexpr Average usual = Average::macro;
  Average average = usual;

  static constexpr std::optional<Mode> better = Mode::max;
  static constexpr Compares compares = Compares::one_label;

  static Declaration<AveragePrecision> declaration() {
    return declare::kind<AveragePrecision>(
        {.path = "average_precision",
         .meaning = "For labels, in evaluations alone: the area under the curve of precision and recall, as "
                    "scikit-learn's average_precision_score; of more than two classes each against the rest. It tells "
                    "more than roc_auc where a class is rare. null for a class or label without an example, as for "
                    "roc_auc.",
         .example = "metrics: [average_precision]"},
        field(&AveragePrecision::average, average_key("As for roc_auc.")));
  }
  void finish(const RowCall& call) const { finish_curve(average, call, average_precision); }
};

}  // namespace pmaptrain::metrics
