// Environment variables that control the use of GPUs. All functions throw Error (usage) for an invalid value. An empty
// variable counts as not set.
#pragma once

#include <chrono>
#include <cstdint>

namespace pmaptrain::gpu {

// How long a device waits for others: the number of seconds in PMAPTRAIN_GPU_TIMEOUT, by default 10 minutes.
std::chrono::duration<double> patience();

// The calls of a step that are part of CUDA graphs, from PMAPTRAIN_GPU_GRAPHS.
enum class Graphs : std::uint8_t {
  usual,  // on one GPU all calls; on several GPUs all but collectives
  off,    // none, so profilers see each call
  whole,  // all calls, even collectives of several GPUs
};
Graphs wanted_graphs();

}  // namespace pmaptrain::gpu
