#include "core/runtime/cuda/watchdog.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/runtime/gpu/environment.h"

namespace pmaptrain::cuda {

void CollectiveWatchdog::track(std::string what, cudaStream_t stream) {
  OwnEvent end;
  if (unused_.empty()) {
    end = make_event();
  } else {
    end = std::move(unused_.back());
    unused_.pop_back();
  }
  cuda::check(cudaEventRecord(end.get(), stream), what);
  if (pending_.empty()) oldest_since_ = std::chrono::steady_clock::now();
  pending_.push_back({std::move(what), std::move(end)});
}

std::chrono::duration<double> CollectiveWatchdog::limit() const {
  const std::chrono::duration<double> most = gpu::gpu_timeout(), least(30);
  return longest_.count() == 0 ? most : std::min(most, std::max(least, 20 * longest_));
}

void CollectiveWatchdog::check(int rank) {
  while (!pending_.empty()) {
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - oldest_since_;
    if (!is_done(pending_.front().end, pending_.front().what)) {
      if (waited < limit()) return;
      fail_running(fmt::format("GPU {}: {} has not ended within {:.0f} s", rank, pending_.front().what, waited.count()),
                   "another rank did not come to it, or a link between GPUs is down; PMAPTRAIN_GPU_TIMEOUT sets the "
                   "seconds");
    }
    longest_ = std::max(longest_, waited);
    unused_.push_back(std::move(pending_.front().end));
    pending_.pop_front();
    oldest_since_ = std::chrono::steady_clock::now();
  }
}

}  // namespace pmaptrain::cuda
