// The runs in a folder, as `pmaptrain runs` lists them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/report/runs/run_record.h"

namespace pmaptrain::report {

struct ListedRun {
  std::filesystem::path folder;
  std::string status;  // of Standing, or "damaged"
  std::string reason;  // of summary.json; else empty
  std::int64_t steps = 0;
  std::optional<BestValue> best;
  double age = 0;  // seconds since the run wrote its folder last
  std::uintmax_t bytes = 0;
  std::string problem;  // why files of it cannot be read; empty: they can
};

// The run folders in `folder` and in folders in it, four levels deep, sorted. A run with damaged files is listed, too.
// `measure`: the best value of this measure; empty: of the one by which each run selects its best checkpoint. Throws
// Error (usage) if there is no such folder.
std::vector<ListedRun> list_runs(const std::filesystem::path& folder, const std::string& measure = "");

// What a list can be sorted by, beside the names of measures.
const std::vector<std::string>& list_columns();
// Sorts by "name" or "status"; by "steps" or "size", the largest first; by "age", the newest first; by "best" or a
// measure, the best first, and runs without a value last.
void sort_runs(std::vector<ListedRun>& runs, const std::string& key);

// "12 s", "5 min", "3 h", "14 d"
std::string age_text(double seconds);

}  // namespace pmaptrain::report
