// A platform whose devices count the calls that take time once: of memory, kernels, graphs and communicators.
#pragma once

#include <atomic>
#include <memory>

#include "core/runtime/gpu/device.h"

namespace pmaptrain::test {

// Of all devices together.
struct CallCounts {
  std::atomic<int> memory = 0, kernels = 0, graphs = 0, communicators = 0;
  int all() const { return memory + kernels + graphs + communicators; }
};

// `counts` outlives the platform and its devices.
std::unique_ptr<gpu::Platform> make_counted(std::unique_ptr<gpu::Platform> platform, CallCounts& counts);

}  // namespace pmaptrain::test
