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
  // Throws Error (failed) when the oldest has been waited for longer than gpu::patience().
  void check(int rank);

 private:
  struct Queued {
    std::string what;
    OwnEvent end;
  };
  std::deque<Queued> pending_;
  std::vector<OwnEvent> unused_;
  std::chrono::steady_clock::time_point oldest_since_;
};

}  // namespace pmaptrain::cuda
