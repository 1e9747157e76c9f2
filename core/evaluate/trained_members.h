// The members of a run that a command uses, with their trained parameters.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/run/checkpoint.h"
#include "core/spec/load.h"

namespace pmaptrain::evaluate {

struct TrainedMembers {
  run::CheckpointWeights trained;
  std::vector<std::int64_t> members;   // at least one
  std::vector<std::int64_t> left_out;  // members without a best checkpoint, if "best" is asked for
  bool is_whole_ensemble = false;      // whether they are all members of an ensemble, rather than one
  std::string checkpoint;              // "step-00000100"; "best" of several members that have each their own
};

// `checkpoint` is "last", "best" or a step. Takes all members of an ensemble, or `member` alone. Throws Error: usage
// for a member or a checkpoint that does not exist, data. Of several processes, all get what process 0 has loaded.
TrainedMembers load_members(const spec::Loaded& loaded, const std::filesystem::path& run_dir,
                            const std::string& checkpoint, spec::Weights weights, run::MemberNumber member,
                            const run::FirstProcess& first = {});

}  // namespace pmaptrain::evaluate
