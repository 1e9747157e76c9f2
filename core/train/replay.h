// Runs a step again with the reference kernels, to find out why it was not finite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/runtime/backend.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

struct ReplayLimits {
  double seconds = 5;              // no microbatch begins after this time, because the checkpoint waits
  double flops = 5e9;              // of one program; the reference kernels compute about 1e9 per second
  std::size_t bytes = 1ULL << 30;  // of the values of one program
};

// Explains why step `step` (from 1) was not finite, as words for a message: the device, the first equation with a
// result that is not finite although its operands are, its line in the config, and the examples. `module` holds the
// values from before the step. Runs the microbatches one at a time, then the whole step; leaves out what exceeds the
// limits, and says so. Throws Error (data) if examples can no longer be read.
std::string replay(const Setup& setup, Module& module, std::int64_t step, std::int64_t member = 0,
                   const ReplayLimits& limits = {});

// Whether an example of the batch of step `step` (from 1) has a weight other than 0. `spec` is that of the member, and
// `batch` the plan of the training split `train`.
bool has_weight(const spec::Spec& spec, const data::Dataset& train, const data::BatchPlan& batch, std::int64_t step);

}  // namespace pmaptrain::train
