// The measures of a run that has ended, as tables name them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/run/records/events.h"

namespace pmaptrain::run {

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

// The same as a table with a column for each measure, in the order in which they first occur.
struct MeasureTable {
  std::vector<ShownMeasures> rows;
  std::vector<std::string> names;
  std::vector<std::vector<std::optional<double>>> values;  // by row and by name; none: the row has no such measure
};
MeasureTable measure_table(const Ended& ended, const MemberEnded& member);

// One measure of all members that have it.
struct MemberColumn {
  std::string checkpoint, group, name;  // `group` is ShownMeasures::name
  std::vector<std::optional<double>> values;
};
// The measures of all members: under the best checkpoints, then under the last parameters; of each train, validation
// and test.
std::vector<MemberColumn> member_columns(const Ended& ended);

}  // namespace pmaptrain::run
