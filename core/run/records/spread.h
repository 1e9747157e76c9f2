// The best, the median and the worst of many members.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/run/records/events.h"

namespace pmaptrain::run {

// The spread of one measure. NaN is worse than every number.
struct Spread {
  double best = 0, median = 0, worst = 0;
  std::int64_t best_member = 0, worst_member = 0;  // the first of equal members
};

// One measure of the members that have it, at least one: some evaluations of an ensemble have measures that others lack
// (roc_auc_left_out).
struct MeasureOfMembers {
  std::string name;  // tells which values are better
  std::vector<double> values;
  std::vector<std::int64_t> members;  // of each value

  void add(std::int64_t member, double value);
  Spread spread() const;
};

// Adds the measures of a member to those of the same names; what no member before it has follows at the end.
void collect(std::vector<MeasureOfMembers>& all, std::int64_t member, const Measures& measures);

Measures medians_of(const std::vector<MeasureOfMembers>& all);

// A summary of a list event (events.h): the spread of the first measure, which is the loss, and the medians of all.
struct MemberSummary {
  Spread loss;
  Measures medians;
};

template <class E>
MemberSummary summary_of(const std::vector<E>& of_members) {
  std::vector<MeasureOfMembers> all;
  for (const E& of_member : of_members) collect(all, of_member.member.value_or(0), of_member.measures);
  return {all.front().spread(), medians_of(all)};
}

}  // namespace pmaptrain::run
