// Environment variables that control the use of GPUs. All functions throw Error (usage) for an invalid value. An empty
// variable counts as not set.
#pragma once

#include <chrono>
#include <cstdint>

namespace pmaptrain::gpu {

// How long a device waits for other devices before it fails: PMAPTRAIN_GPU_TIMEOUT in seconds, by default 10 minutes.
std::chrono::duration<double> gpu_timeout();

// Which calls of a step are recorded in CUDA graphs: the value of PMAPTRAIN_GPU_GRAPHS.
enum class GraphMode : std::uint8_t {
  usual,  // the variable is not set: on one GPU all calls, on several GPUs all calls but collectives
  off,    // no calls, so that profilers see each call
  whole,  // all calls, also collectives of several GPUs
};
GraphMode graph_mode();

}  // namespace pmaptrain::gpu
