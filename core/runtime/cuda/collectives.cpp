#include "core/runtime/cuda/collectives.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/runtime/gpu/environment.h"

namespace pmaptrain::cuda {

std::string text_of(const RankCall& call, std::int64_t sequence, std::span<const int> ranks) {
  return fmt::format("{} {} ({}, {}) of communicator {}{}{}", gpu::to_string(call.kind), sequence,
                     to_string(call.dtype), human_bytes(call.bytes), ranks_text(ranks),
                     call.place.empty() ? "" : ", for ", call.place);
}

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

void CollectiveWatchdog::check(int rank) {
  while (!pending_.empty() && is_done(pending_.front().end, pending_.front().what)) {
    unused_.push_back(std::move(pending_.front().end));
    pending_.pop_front();
    oldest_since_ = std::chrono::steady_clock::now();
  }
  if (pending_.empty() || std::chrono::steady_clock::now() - oldest_since_ < gpu::gpu_timeout()) return;
  fail_running(
      fmt::format("GPU {}: {} has not ended within {} s", rank, pending_.front().what, gpu::gpu_timeout().count()),
      "another rank did not come to it, or a link between GPUs is down; PMAPTRAIN_GPU_TIMEOUT sets the seconds");
}

std::size_t position_of(int rank, std::span<const int> ranks) {
  const auto place = std::find(ranks.begin(), ranks.end(), rank);
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  if (place == ranks.end() || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    fail_running(
        fmt::format("GPU: rank {} cannot join communicator {}: it must hold each rank once", rank, ranks_text(ranks)));
  }
  return static_cast<std::size_t>(place - ranks.begin());
}

}  // namespace pmaptrain::cuda
