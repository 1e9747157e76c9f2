// Metrics that cannot be computed from sums over examples, such as roc_auc: functions of a row of numbers of each
// example.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/metrics/planned.h"

namespace pmaptrain::metrics {

// The weights of the examples of each class, by the class that is predicted for them: [true class][predicted class].
using Confusion = std::vector<std::vector<double>>;

struct RowMeasures {
  std::vector<std::pair<std::string, double>> values;
  std::optional<Confusion> confusion;
};

// Which numbers a row has. Of a sequence, a row has the numbers of each position.
struct RowLayout {
  enum class Kind { classes, labels, numbers } kind = Kind::classes;
  std::size_t outputs = 0;    // probabilities, labels or numbers of a target
  std::size_t positions = 1;  // of a sequence, without probabilities

  std::size_t size() const {
    return kind == Kind::classes ? 3 + outputs : kind == Kind::labels ? 1 + 2 * outputs : 1 + outputs;
  }
};

inline RowLayout layout_of(const Objective& objective) {
  const auto outputs = static_cast<std::size_t>(objective.output.empty() ? 1 : objective.output.back());
  if (objective.is_multi_label()) return {RowLayout::Kind::labels, outputs};
  if (!losses::is_classifier(objective))
    return {RowLayout::Kind::numbers, static_cast<std::size_t>(numel(objective.target.shape))};
  if (objective.has_sequences())
    return {RowLayout::Kind::classes, 0, static_cast<std::size_t>(numel(objective.target.shape))};
  return {RowLayout::Kind::classes, outputs};
}

inline constexpr std::size_t weight_column = 0, actual_column = 1, predicted_column = 2, first_probability = 3;

// The gathered rows of examples, or of positions, that count.
class Examples {
 public:
  // With a threshold class 1 of two is predicted above this probability, instead of what the rows say.
  Examples(const Objective& objective, std::span<const float> numbers, std::optional<double> threshold)
      : layout_(layout_of(objective)), threshold_(threshold) {
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
    if (layout_.kind == RowLayout::Kind::labels) return examples_[example][1 + layout_.outputs + label] > 0.5F;
    return actual(example) == label;
  }
  // The probability of a class or label; a single output is the probability of class 1.
  float probability(std::size_t example, std::size_t label) const {
    if (layout_.kind == RowLayout::Kind::labels) return examples_[example][1 + label];
    return examples_[example][first_probability + (layout_.outputs == 1 ? 0 : label)];
  }
  // The absolute error of a number of a target.
  float error(std::size_t example, std::size_t number) const { return examples_[example][1 + number]; }

 private:
  RowLayout layout_;
  std::optional<double> threshold_;
  std::vector<std::span<const float>> examples_;
};

struct RowCall {
  const Metric& metric;
  const Objective& objective;
  const Examples& examples;
  RowMeasures& measures;
};

inline constexpr double undefined_value = std::numeric_limits<double>::quiet_NaN();

}  // namespace pmaptrain::metrics
