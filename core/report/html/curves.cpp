#include "core/report/html/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "core/report/json.h"

namespace pmaptrain::report {
namespace {

// Of one run, which bounds its page to 1.5 MB; of all runs.
constexpr std::size_t points_of_run = 15'000, points_of_page = 120'000;
constexpr std::size_t fewest_points = 50;

// A curve of the page.
struct Curve {
  std::size_t owner = 0;
  Series series;                  // of several members: the medians
  std::vector<double> low, high;  // of several members
};

Json numbers(const std::vector<double>& all, const std::vector<std::size_t>& chosen) {
  Json list = Json::array();
  for (const std::size_t i : chosen) list.push_back(std::isfinite(all[i]) ? Json(all[i]) : Json(nullptr));
  return list;
}

// A series of each measure over all members.
std::vector<Curve> over_members(const Metrics& metrics, std::size_t owner) {
  struct AtStep {
    double seconds = 0;
    std::vector<double> values;
  };
  using Key = std::tuple<std::string, std::string, std::string>;
  std::vector<Key> order;
  std::map<Key, std::map<std::int64_t, AtStep>> all;
  for (const Series& series : metrics.series) {
    const Key key{series.event, series.split, series.measure};
    if (!all.contains(key)) order.push_back(key);
    std::map<std::int64_t, AtStep>& steps = all[key];
    for (std::size_t i = 0; i < series.steps.size(); ++i) {
      AtStep& at = steps[series.steps[i]];
      at.seconds = std::max(at.seconds, series.seconds[i]);
      if (!std::isnan(series.values[i])) at.values.push_back(series.values[i]);
    }
  }
  std::vector<Curve> curves;
  for (const Key& key : order) {
    Curve curve{owner, {std::get<0>(key), std::get<1>(key), std::get<2>(key), {}, {}, {}, {}}, {}, {}};
    for (auto& [step, at] : all[key]) {
      std::vector<double>& values = at.values;
      std::sort(values.begin(), values.end());
      constexpr double none = std::numeric_limits<double>::quiet_NaN();
      const std::size_t middle = values.size() / 2;
      const double median = values.empty()           ? none
                            : values.size() % 2 == 1 ? values[middle]
                                                     : values[middle - 1] / 2 + values[middle] / 2;
      curve.series.steps.push_back(step);
      curve.series.seconds.push_back(at.seconds);
      curve.series.values.push_back(median);
      curve.low.push_back(values.empty() ? none : values.front());
      curve.high.push_back(values.empty() ? none : values.back());
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

// How many points each curve may have.
std::size_t points_of_curve(const std::vector<Curve>& curves, std::size_t runs) {
  const std::size_t budget = std::min(points_of_run * runs, points_of_page);
  std::size_t most = most_points;
  const auto total = [&] {
    std::size_t sum = 0;
    for (const Curve& curve : curves) sum += std::min(curve.series.values.size(), most) * (curve.low.empty() ? 1 : 2);
    return sum;
  };
  while (most > fewest_points && total() > budget) most = most * 3 / 4;
  return std::max(most, fewest_points);
}

}  // namespace

std::vector<std::size_t> thinned(std::span<const double> values, std::size_t most) {
  if (values.size() <= most) {
    std::vector<std::size_t> all(values.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  const bool has_gaps = std::any_of(values.begin(), values.end(), [](double value) { return !std::isfinite(value); });
  const std::size_t stretches = (most - 2) / (has_gaps ? 3 : 2), inner = values.size() - 2;
  std::set<std::size_t> kept{0, values.size() - 1};
  for (std::size_t s = 0; s < stretches; ++s) {
    const std::size_t from = 1 + inner * s / stretches, to = 1 + inner * (s + 1) / stretches;
    std::size_t least = to, largest = to, gap = to;
    for (std::size_t i = from; i < to; ++i) {
      if (!std::isfinite(values[i])) {
        if (gap == to) gap = i;
        continue;
      }
      if (least == to || values[i] < values[least]) least = i;
      if (largest == to || values[i] > values[largest]) largest = i;
    }
    for (const std::size_t i : {least, largest, gap}) {
      if (i != to) kept.insert(i);
    }
  }
  return {kept.begin(), kept.end()};
}

Json curves_json(std::span<const RunRecord> runs) {
  std::size_t lines = 0;
  const auto members_of = [](const RunRecord& run) {
    std::set<std::int64_t> members;
    for (const Series& series : run.metrics.series) members.insert(series.member.value_or(0));
    return std::max<std::size_t>(1, members.size());
  };
  for (const RunRecord& run : runs) lines += members_of(run);
  Json owners = Json::array();
  std::vector<Curve> curves;
  for (const RunRecord& run : runs) {
    const std::size_t members = members_of(run);
    if (members > 1 && lines > most_owners) {
      for (Curve& curve : over_members(run.metrics, owners.size())) curves.push_back(std::move(curve));
      owners.push_back(fmt::format("{}: median of {} members", run.label, members));
      continue;
    }
    std::map<std::int64_t, std::size_t> place;
    for (const Series& series : run.metrics.series) {
      const auto [found, is_new] = place.try_emplace(series.member.value_or(0), owners.size());
      if (is_new) {
        owners.push_back(series.member ? fmt::format("{} member {}", run.label, *series.member) : run.label);
      }
      curves.push_back({found->second, series, {}, {}});
    }
    if (place.empty()) owners.push_back(run.label);
  }
  const std::size_t most = points_of_curve(curves, runs.size());
  Json list = Json::array();
  for (const Curve& curve : curves) {
    const Series& series = curve.series;
    const std::vector<std::size_t> chosen = thinned(series.values, most);
    Json steps = Json::array();
    for (const std::size_t i : chosen) steps.push_back(series.steps[i]);
    Json one{{"owner", curve.owner},
             {"event", series.event},
             {"split", series.split},
             {"measure", series.measure},
             {"total", series.values.size()},
             {"step", std::move(steps)},
             {"seconds", numbers(series.seconds, chosen)},
             {"value", numbers(series.values, chosen)}};
    if (!curve.low.empty()) {
      one["low"] = numbers(curve.low, chosen);
      one["high"] = numbers(curve.high, chosen);
    }
    list.push_back(std::move(one));
  }
  return {{"owners", std::move(owners)}, {"series", std::move(list)}};
}

}  // namespace pmaptrain::report
