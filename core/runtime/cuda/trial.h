// Chooses the fastest of several commands that compute the same, by their times on the current GPU.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/kernel/gpu.h"
#include "core/runtime/cuda/prepare.h"
#include "core/runtime/gpu/timed_choice.h"

namespace pmaptrain::cuda {

struct Candidate {
  std::string name;
  std::unique_ptr<PreparedCommand> command;
};

// Takes the times on memory of its own, where `choices` does not know the fastest yet; see TimedChoices::fastest() for
// `purpose`. There is at least one candidate.
std::unique_ptr<PreparedCommand> fastest_of(std::vector<Candidate> candidates, const std::string& purpose,
                                            const GpuRequest& request, gpu::TimedChoices& choices);

}  // namespace pmaptrain::cuda
