// How far predicted and true positions of a class overlap, as segmentation measures it.
#pragma once

#include <string>

#include "core/metrics/quotients.h"

namespace pmaptrain::metrics {

inline Key overlap_average_key() {
  return average_key(
      "macro: the mean over the classes that occur in the labels or in the predictions. micro: of all decisions "
      "together. weighted: the mean by how often each class occurs. none: one value for each class.");
}
inline void refuse_samples(const MetricCall& call, Average average, const Checks& checks) {
  if (average != Average::samples) return;
  checks.refuse(call.metric.place, call.name + " takes no average: samples, which is of several labels",
                "use macro, micro or weighted");
}

struct MeanIou {
  static constexpr Average usual = Average::macro;
  Average average = usual;

  static constexpr std::optional<Mode> better = Mode::max;
  static constexpr Compares compares = Compares::classes;

  static Declaration<MeanIou> declaration() {
    return declare::kind<MeanIou>(
        {.path = "mean_iou",
         .meaning = "For labels of pixels, or others: intersection over union of each class, true positives / (true "
                    "positives + false positives + false negatives), of all positions of the split together, and the "
                    "mean over the classes, as scikit-learn's jaccard_score.",
         .example = "metrics: [mean_iou, mean_iou: {average: none}]"},
        field(&MeanIou::average, overlap_average_key()));
  }
  // "mean_iou"; of each class "iou_0", "iou_1", ...
  std::string label() const {
    if (average == usual) return "mean_iou";
    return average == Average::none ? "iou" : std::string("iou_") + declare::word_of(average);
  }
  void check(const MetricCall& call, const Checks& checks) const { refuse_samples(call, average, checks); }
  PlannedMetric plan(const MetricCall& call) const {
    return class_quotient(call.metric, call.objective,
                          [](double hits, double predicted, double actual) { return predicted + actual - hits; });
  }
};

struct Dice {
  static constexpr Average usual = Average::macro;
  Average average = usual;

  static constexpr std::optional<Mode> better = Mode::max;
  static constexpr Compares compares = Compares::classes;

  static Declaration<Dice> declaration() {
    return declare::kind<Dice>(
        {.path = "dice",
         .meaning = "For labels of pixels, or others: the Dice coefficient of each class, 2 * true positives / (2 * "
                    "true positives + false positives + false negatives), of all positions of the split together, and "
                    "the mean over the classes. It equals f1 of the classes.",
         .example = "metrics: [dice]"},
        field(&Dice::average, overlap_average_key()));
  }
  void check(const MetricCall& call, const Checks& checks) const { refuse_samples(call, average, checks); }
  PlannedMetric plan(const MetricCall& call) const {
    return class_quotient(call.metric, call.objective,
                          [](double, double predicted, double actual) { return (predicted + actual) / 2; });
  }
};

}  // namespace pmaptrain::metrics
