// Training steps without a run: a module with initial values and the first batch.
#pragma once

#include <memory>

#include "core/runtime/cpu/module.h"
#include "core/setup/plan.h"

namespace pmaptrain::testing {

// A module of the training step alone, with what the first step of a run would find.
std::unique_ptr<Module> load_step(const setup::Setup& setup, const CpuBackendOptions& options = {});
void take_steps(Module& module, std::int64_t steps = 1);

// The shipped convolutional network on few examples.
setup::Setup small_cnn(std::vector<std::string> set = {});

}  // namespace pmaptrain::testing
