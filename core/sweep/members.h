// Trials that were trained as members of an ensemble: how they leave it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace pmaptrain::sweep {

// A member that leaves its ensemble, as the run that it stands for.
struct Leaving {
  std::int64_t member = 0;
  std::string name, config;   // of the run
  std::filesystem::path run;  // its folder
};

// Writes the run folders that members would have left as runs of their own: config.yaml, their lines of metrics.jsonl,
// their last and best checkpoints, summary.json. `ensemble` is the run folder of the ensemble, which has stopped.
// Replaces what an interrupted call left. Throws Error.
void leave_run_folders(const std::filesystem::path& ensemble, const std::vector<Leaving>& leaving);

// Marks the members that are not in `kept` as ended in the last checkpoint of a stopped ensemble, so that it goes on
// without them. Does nothing without a checkpoint. Throws Error.
void keep_members(const std::filesystem::path& ensemble, const std::set<std::int64_t>& kept);

}  // namespace pmaptrain::sweep
