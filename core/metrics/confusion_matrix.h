// How many examples of each class are predicted to be of each class.
#pragma once

#include <utility>

#include "core/metrics/rows.h"

namespace pmaptrain::metrics {

struct ConfusionMatrix {
  static constexpr std::optional<Mode> better = std::nullopt;
  static constexpr Compares compares = Compares::other;

  static Declaration<ConfusionMatrix> declaration() {
    return declare::kind<ConfusionMatrix>(
        {.path = "confusion_matrix",
         .meaning =
             "For labels, in evaluations alone: how many examples of each class, or positions of sequences, are "
             "predicted to be of each class. It is in summary.json, with a list for each true class, and of up to "
             "12 classes below the "
             "report of a run without an ensemble and below what eval prints.",
         .example = "metrics: [accuracy, confusion_matrix]"});
  }
  void check(const MetricCall& call, const Checks& checks) const {
    if (!call.objective.is_binary()) call.check(Compares::classes, checks);
  }
  void finish(const RowCall& call) const {
    const auto classes = static_cast<std::size_t>(call.objective.classes());
    const Examples& examples = call.examples;
    Confusion matrix(classes, std::vector<double>(classes));
    for (std::size_t i = 0; i < examples.count(); ++i)
      matrix.at(examples.actual(i)).at(examples.predicted(i)) += examples.weight(i);
    call.measures.confusion = std::move(matrix);
  }
};

}  // namespace pmaptrain::metrics
