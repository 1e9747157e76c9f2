// Warnings at the end of a run whose trained parameters are useless.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/data/dataset.h"
#include "core/model/model.h"
#include "core/run/records/events.h"
#include "core/spec/spec.h"

namespace pmaptrain::train {

// The mean loss over the first epoch and over the last one, for a run from its first step.
struct LossCourse {
  double first = 0, last = 0;
};

// Returns the course of a member's loss if the loss never decreased, else none.
using StuckLoss = std::function<std::optional<LossCourse>(std::int64_t member)>;

// Returns a warning with advice for each member, or one for several members with the same problem. A member is warned
// about if its loss never decreased (`stuck` returns its course), or if its checkpoint for predictions is no better
// than one constant prediction. The measure that decides is the one by which `train` selects checkpoints, or stops the
// run, where its value for a constant is known: of classes a cross-entropy at least that of the shares of the classes,
// roc_auc at most 0.5, matthews_corrcoef at most 0, accuracy at most the share of the most frequent class; of numbers
// r2 at most 0, a squared error at least that of the targets' mean, an absolute error at least that of their median, a
// huber or log_cosh loss at least that of the best constant. Returns nothing for a run that was stopped or has few
// steps, or without such measures. Reads the targets of the split.
std::vector<run::Warned> useless_result_warnings(const model::Model& model, const data::Source& source,
                                                 std::int64_t steps_per_epoch, const run::Ended& ended,
                                                 const StuckLoss& stuck, const spec::TrainSpec& train);

}  // namespace pmaptrain::train
