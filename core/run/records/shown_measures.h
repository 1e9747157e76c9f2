// The measures of a run that has ended, as tables name them.
#pragma once

#include <string>
#include <vector>

#include "core/run/records/events.h"

namespace pmaptrain::train {

struct ShownMeasures {
  std::string name;        // "validation", or with the checkpoint "validation (best)"
  std::string checkpoint;  // "best" or "last"
  std::string split;
  const Measures* measures = nullptr;
  const std::vector<std::vector<double>>* confusion = nullptr;  // null: none
};

// The measures of each split: under the checkpoint that eval, predict and export use by default, then under the last
// parameters where these are others. Names have their checkpoint where a member of the run has both. The result points
// into `member`.
std::vector<ShownMeasures> shown_measures(const Ended& ended, const MemberEnded& member);

}  // namespace pmaptrain::train
