// Training steps without a run: an executor with initial values and the first batch.
#pragma once

#include "core/runtime/cpu/executor.h"
#include "core/train/setup.h"

namespace pmaptrain::testing {

// Sets what the first step of a run would find.
void fill(CpuExecutor& executor, const train::Setup& setup);

// The shipped convolutional network on few examples.
train::Setup small_cnn(std::vector<std::string> set = {});

}  // namespace pmaptrain::testing
