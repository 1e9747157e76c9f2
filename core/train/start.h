// The values that a run's executor begins with.
#pragma once

#include "core/runtime/cpu/executor.h"
#include "core/train/setup.h"

namespace pmaptrain::train {

// Sets every parameter (from model.init, or drawn), every piece of state and every hyper input of the training program.
// Throws Error (data) for initial values that do not fit.
void set_initial_values(CpuExecutor& executor, const Setup& setup);

// Feeds the first batch of the training split in file order: what steps are timed on.
void feed_first_batch(CpuExecutor& executor, const Setup& setup);

}  // namespace pmaptrain::train
