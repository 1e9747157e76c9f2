// Tracks a device's queued collectives, and reports one that takes too long.
#pragma once

#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include "core/runtime/cuda/handles.h"

namespace pmaptrain::cuda {

class Watch {
 public:
  // Records that `what` was the last work queued on the stream.
  void queued(std::string what, cudaStream_t stream);
  // Throws Error (failed) if the oldest queued work exceeds its time limit. The limit is gpu::patience() until some
  // work has completed. After that it is 20 times the longest wait so far, but at least 30 s and at most
  // gpu::patience().
  void check(int rank);

 private:
  struct Queued {
    std::string what;
    OwnEvent end;
  };
  std::chrono::duration<double> limit() const;

  std::deque<Queued> pending_;
  std::vector<OwnEvent> unused_;
  std::chrono::steady_clock::time_point oldest_since_;
  std::chrono::duration<double> longest_{0};  // the longest wait for a collective so far
};

}  // namespace pmaptrain::cuda
