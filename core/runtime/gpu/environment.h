// What the environment says of how GPUs are used. All functions throw Error (usage) for what a variable cannot be; an
// empty one is as if it were not there.
#pragma once

#include <chrono>
#include <cstdint>

namespace pmaptrain::gpu {

// How long a device waits for others: 10 minutes, or the seconds in PMAPTRAIN_GPU_TIMEOUT.
std::chrono::duration<double> patience();

// PMAPTRAIN_GPU_GRAPHS: which calls of a step are part of CUDA graphs.
enum class Graphs : std::uint8_t {
  usual,  // all of one GPU; of several, all but collectives
  off,    // none: profilers see each call
  whole,  // collectives of several GPUs, too
};
Graphs wanted_graphs();

}  // namespace pmaptrain::gpu
