#include "core/run/records/spread.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/spec/spec.h"

namespace pmaptrain::run {

void MeasureOfMembers::add(std::int64_t member, double value) {
  values.push_back(value);
  members.push_back(member);
}

Spread MeasureOfMembers::spread() const {
  const bool larger = spec::mode_of(name) == spec::Mode::max;
  const auto is_better = [&](double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
    return larger ? a > b : a < b;
  };
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return is_better(values[a], values[b]); });
  const auto worst = std::find_if(order.begin(), order.end(),
                                  [&](std::size_t i) { return !is_better(values[i], values[order.back()]); });
  const std::size_t middle = order.size() / 2;
  const double median =
      order.size() % 2 == 1 ? values[order[middle]] : values[order[middle - 1]] / 2 + values[order[middle]] / 2;
  return {values[order.front()], median, values[*worst], members[order.front()], members[*worst]};
}

void collect(std::vector<MeasureOfMembers>& all, std::int64_t member, const Measures& measures) {
  for (const auto& measure : measures) {
    auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == measure.first; });
    if (found == all.end()) found = all.insert(all.end(), {measure.first, {}, {}});
    found->add(member, measure.second);
  }
}

Measures medians_of(const std::vector<MeasureOfMembers>& all) {
  Measures medians;
  for (const MeasureOfMembers& one : all) medians.emplace_back(one.name, one.spread().median);
  return medians;
}

}  // namespace pmaptrain::run
