#include "core/metrics/accuracy.h"
#include "core/metrics/confusion_matrix.h"
#include "core/metrics/curves.h"
#include "core/metrics/errors.h"
#include "core/metrics/matthews_corrcoef.h"
#include "core/metrics/median_absolute_error.h"
#include "core/metrics/overlap.h"
#include "core/metrics/perplexity.h"
#include "core/metrics/quotients.h"
#include "core/metrics/r2.h"

namespace pmaptrain::metrics {

// In the order of help.
const std::vector<declare::AnyKind>& family(declare::Tag<MetricKind>) {
  static const auto all =
      declare::kinds_of<MetricKind, Accuracy, SubsetAccuracy, TopKAccuracy, Precision, Recall, F1, MeanIou, Dice,
                        MatthewsCorrcoef, RocAuc, AveragePrecision, ConfusionMatrix, Perplexity, MeanAbsoluteError,
                        MeanSquaredError, RootMeanSquaredError, MeanAbsolutePercentageError, MedianAbsoluteError, R2>();
  return all;
}

}  // namespace pmaptrain::metrics
