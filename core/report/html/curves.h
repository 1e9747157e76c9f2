// The curves of runs as JSON for the page's script.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "core/report/runs/run_record.h"

namespace pmaptrain::report {

// More points of a curve are thinned.
inline constexpr std::size_t most_points = 2000;

// The numbers, ascending, of at most `most` values (at least 8) that stand for all of them: the first and the last one,
// and of each of equal stretches the smallest, the largest, and a NaN if there is one.
std::vector<std::size_t> thinned(std::span<const double> values, std::size_t most);

// {"owners": ["cnn", "cnn member 1"], "series": [{"owner", "event", "split", "measure", "total", "step", "seconds",
// "value"}]}. Values are those of metrics.jsonl, and null for NaN. `total` is the number of points before thinning. If
// there are more than `most_owners` members, a run's members are one owner: the medians, with "low" and "high" around
// them.
nlohmann::ordered_json curves_json(std::span<const RunRecord> runs);
inline constexpr std::size_t most_owners = 10;

}  // namespace pmaptrain::report
