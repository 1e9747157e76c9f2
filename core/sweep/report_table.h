// A sweep as a report shows it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/report/html/sweep_table.h"
#include "core/sweep/table.h"

namespace pmaptrain::sweep {

// `folder` is that of the sweep; it names it.
report::SweepTable report_table(const Results& results, const std::filesystem::path& folder);

// "trial 7" for the folder "0007", "trial 7, replicate 1" for "0007-r1".
std::string trial_name(const std::string& folder);

// The run folders of the best trials, at most `most`, as far as they are there.
std::vector<std::filesystem::path> best_runs(const Results& results, const std::filesystem::path& folder,
                                             std::size_t most);

}  // namespace pmaptrain::sweep
