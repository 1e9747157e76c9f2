#include "core/runtime/cuda/collectives.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"

namespace pmaptrain::cuda {

std::string text_of(const RankCall& call, std::int64_t sequence, std::span<const int> ranks) {
  return fmt::format("{} {} ({}, {}) of communicator {}{}{}", gpu::to_string(call.kind), sequence,
                     to_string(call.dtype), human_bytes(static_cast<double>(call.bytes)), ranks_text(ranks),
                     call.place.empty() ? "" : ", for ", call.place);
}

int Collectives::create_communicator(std::span<const int> ranks, const gpu::CommunicatorId* id) {
  std::unique_ptr<Rank> joined = join_(ranks, id);
  Rank& added = *joined;
  {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(joined));
  }
  added.connect();
  return static_cast<int>(all_.size()) - 1;
}

void Collectives::check() {
  for (const auto& each : all_) each->check_earlier();
}

std::string Collectives::late_call() const {
  const std::lock_guard lock(mutex_);
  for (const auto& each : all_) {
    if (std::string call = each->late_call(); !call.empty()) return call;
  }
  return {};
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
