// Environment variables that control the use of GPUs. All functions throw Error (usage) for an invalid value. An empty
// variable counts as not set.
#pragma once

#include <chrono>

namespace pmaptrain::gpu {

// How long a device waits for other devices before it fails: PMAPTRAIN_GPU_TIMEOUT in seconds, by default 10 minutes.
std::chrono::duration<double> gpu_timeout();

// Whether the calls of a step are recorded in CUDA graphs: on one GPU all, on several GPUs all but collectives. With
// PMAPTRAIN_GPU_GRAPHS=off none is, so that profilers see each call.
bool uses_graphs();

}  // namespace pmaptrain::gpu
