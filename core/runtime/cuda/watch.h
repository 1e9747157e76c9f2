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
  // Throws Error (failed) when the oldest has been waited for too long: longer than gpu::patience() until the first
  // ones have ended, and later than twenty times as long as any has taken, but half a minute at least.
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
