// The kernels of core/ops/gpu_kernels.h as functions of the host: what carries launches out where there is no GPU.
#pragma once

#include <cstdint>

#include "core/runtime/gpu/device.h"

namespace pmaptrain::test {

// In which order blocks, and the threads of a block between two barriers, take their turns.
enum class ThreadOrder : std::uint8_t { forward, reverse, shuffled };

// The memory of a kernel's run.
using HostMemory = gpu::LaunchArguments;

// Runs the launch on the calling thread. Throws std::logic_error where there is no such kernel or the arguments are not
// of its parameters, and what the kernel's threads throw. A barrier is forgotten as simt::Launch says.
void launch_on_host(const GpuLaunch& launch, const HostMemory& memory, ThreadOrder order = ThreadOrder::forward,
                    unsigned seed = 0, int forgotten_barrier = -1);

}  // namespace pmaptrain::test
