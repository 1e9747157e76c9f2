// Trials that were trained as members of an ensemble: how they leave it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

namespace pmaptrain::sweep {

// Writes the run folder that the member would have left as a run of its own with this name and config: config.yaml, its lines of
// metrics.jsonl, its last and its best checkpoint, summary.json. `ensemble` is the run folder of the ensemble, which
// has stopped. Replaces what an interrupted call left. Throws Error.
void leave_run_folder(const std::filesystem::path& ensemble, std::int64_t member, const std::string& name,
                      const std::string& config, const std::filesystem::path& run);

// Marks the members that are not in `kept` as ended in the last checkpoint of a stopped ensemble, so that it goes on
// without them. Does nothing without a checkpoint. Throws Error.
void keep_members(const std::filesystem::path& ensemble, const std::set<std::int64_t>& kept);

}  // namespace pmaptrain::sweep
