// The collectives that a device has queued and that have not ended: what is said when one of them does not end.
#pragma once

#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include "core/runtime/cuda/handles.h"

namespace pmaptrain::cuda {

class Watch {
 public:
  // `what` was queued last in this stream.
  void queued(std::string what, cudaStream_t stream);
  // Throws Error (failed) if the oldest queued work exceeds its time limit. The limit is gpu::patience() until some
  // work has completed. After that it is 20 times the longest wait so far, at least 30 s and at most gpu::patience().
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
  std::chrono::duration<double> longest_{0};  // that one has been waited for
};

}  // namespace pmaptrain::cuda
