// Runs a step again with the reference kernels, to find what made it not finite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/runtime/backend.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

struct ReplayLimits {
  double seconds = 5;              // after which no further microbatch is begun: the checkpoint waits for it
  double flops = 5e9;              // of one program; the reference kernels compute some 1e9 in a second
  std::size_t bytes = 1ULL << 30;  // of the values of one program
};

// What made step `step` (from 1) not finite, in words for a message: the device, the first equation with a result that
// is not finite although its operands are, its line in the config, and the examples. `module` holds the values from
// before the step. First the microbatches are run, one at a time, then the whole step; what is larger than the limits
// is left out, and the words say so. Throws Error (data) for examples that cannot be read any more.
std::string replay(const Setup& setup, Module& module, std::int64_t step, std::int64_t member = 0,
                   const ReplayLimits& limits = {});

// Whether an example of the batch of step `step` (from 1) has a weight other than 0.
bool has_weight(const Setup& setup, std::int64_t step, std::int64_t member = 0);

}  // namespace pmaptrain::train
