// What is told at the end of a run whose result is worth nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/run/records/events.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

// Of a run from its first step on: the means of the loss over its first epoch and its last one.
struct LossCourse {
  double first = 0, last = 0;
};

// One text for each member, or for several that have it in common, with what helps: where its loss never fell (`stuck`
// says how it went then), or its measures on the split that the report ends with are no better than those of one
// prediction for all examples. Accuracy is then at most the share of the most frequent class, r2 at most 0, a squared
// error at least that of the targets' mean, an absolute error at least that of their median, a huber loss at least that
// of the constant that has the least. Nothing of a run that was stopped or had few steps, and where nothing of that is
// measured. Reads the targets of the split.
std::vector<Warned> worth_nothing(const Setup& setup, const Ended& ended,
                                  const std::function<std::optional<LossCourse>(std::int64_t member)>& stuck);

}  // namespace pmaptrain::train
