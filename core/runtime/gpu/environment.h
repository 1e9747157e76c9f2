// Environment variables that control the use of GPUs. All functions throw Error (usage) for an invalid value. An empty
// variable counts as not set.
#pragma once

#include <chrono>

namespace pmaptrain::gpu {

// How long a device waits for other devices before it fails: PMAPTRAIN_GPU_TIMEOUT in seconds, by default 10 minutes.
std::chrono::duration<double> gpu_timeout();

// Whether the calls of a step, all but collectives, are recorded in CUDA graphs. With PMAPTRAIN_GPU_GRAPHS=off none is,
// so that profilers see each call.
bool uses_graphs();

}  // namespace pmaptrain::gpu
