// Runs a step again with the reference kernels, to find out why it was not finite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/runtime/backend.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

struct ReplayLimits {
  double seconds = 5;              // no microbatch begins after this time: the run's checkpoint is not written before
  double flops = 5e9;              // of one program; the reference kernels compute about 1e9 per second
  std::size_t bytes = 1ULL << 30;  // of the values of one program
};

struct Replayed {
  std::string text;
  bool is_of_few = false;  // the text names examples that are at most half of their microbatch
};

// Returns a text for a message that explains why step `step` (from 1) was not finite. It names the first equation that
// made a non-finite result from finite operands, the logical device, the line in the config, and the examples. `module`
// must hold the values from before the step. First replays the forward and backward pass of each microbatch, then the
// whole step. Skips a replay that would exceed `limits`, and the text says so. Throws Error (data) if examples can no
// longer be read.
Replayed replay(const setup::Setup& setup, Module& module, std::int64_t step, std::int64_t member = 0,
                const ReplayLimits& limits = {});

// Whether any example in the batch of step `step` (from 1) has a weight other than 0 and a label that counts. `spec` is
// the member's config, and `batch` the plan of batches of the training split `train`.
bool has_weighted_example(const spec::Spec& spec, const data::Dataset& train, const BatchPlan& batch,
                          std::int64_t step);

}  // namespace pmaptrain::train
