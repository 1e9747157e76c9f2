// Finds a collective of a device that takes too long.
#pragma once

#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include "core/runtime/cuda/handles.h"

namespace pmaptrain::cuda {

class CollectiveWatchdog {
 public:
  // Must be called when a collective, or a graph with collectives, has been queued on the stream. `what` describes it
  // in messages.
  void track(std::string what, cudaStream_t stream);
  // Throws Error (failed) if the oldest tracked work has exceeded its time limit, or has failed. The limit is
  // gpu::gpu_timeout() until the first work is done. Then it is 20 times the longest wait so far, but at least 30 s and
  // at most gpu::gpu_timeout().
  void check(int rank);

 private:
  struct Queued {
    std::string what;
    OwnEvent end;
  };
  std::chrono::duration<double> limit() const;

  std::deque<Queued> pending_;                          // tracked work that is not known to be done
  std::vector<OwnEvent> unused_;                        // events that can be recorded again
  std::chrono::steady_clock::time_point oldest_since_;  // since when check() waits for the oldest pending work
  std::chrono::duration<double> longest_{0};            // the longest wait for a collective so far
};

}  // namespace pmaptrain::cuda
