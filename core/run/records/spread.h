// The best, the median and the worst of many members.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/run/records/events.h"

namespace pmaptrain::train {

// The spread of one measure. NaN is worse than every number.
struct Spread {
  double best = 0, median = 0, worst = 0;
  std::int64_t best_member = 0, worst_member = 0;  // the first of equal members
};

// `values` has a value for each member in `members`, at least one. The measure's name tells which values are
// better.
Spread spread_of(const std::string& measure, const std::vector<double>& values,
                 const std::vector<std::int64_t>& members);

// A summary of a list event (events.h): the spread of the first measure, which is the loss, and the medians of all.
struct MemberSummary {
  Spread loss;
  Measures medians;
};

template <class E>
MemberSummary summary_of(const std::vector<E>& of_members) {
  MemberSummary summary;
  std::vector<std::int64_t> members;
  members.reserve(of_members.size());
  for (const E& of_member : of_members) members.push_back(of_member.member.value_or(0));
  for (std::size_t i = 0; i < of_members.front().measures.size(); ++i) {
    const std::string& name = of_members.front().measures[i].first;
    std::vector<double> values;
    values.reserve(of_members.size());
    for (const E& of_member : of_members) values.push_back(of_member.measures[i].second);
    const Spread spread = spread_of(name, values, members);
    if (i == 0) summary.loss = spread;
    summary.medians.emplace_back(name, spread.median);
  }
  return summary;
}

}  // namespace pmaptrain::train
