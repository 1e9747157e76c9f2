#include "core/runtime/gpu/ending.h"

#include <utility>

namespace pmaptrain::gpu {

// enter() stores inside_since, then reads `closed`; a thread that aborts does the reverse. So one of them sees the
// other.
bool Ending::enter(std::size_t rank) {
  ranks_[rank].inside_since = std::chrono::steady_clock::now().time_since_epoch().count();
  if (!ranks_[rank].closed) return true;
  leave(rank);
  return false;
}

void Ending::leave(std::size_t rank) { ranks_[rank].inside_since = 0; }

std::chrono::duration<double> Ending::lasted(std::size_t rank) const {
  const std::chrono::steady_clock::duration since(ranks_[rank].inside_since);
  if (since.count() == 0) return {};
  return std::chrono::steady_clock::now().time_since_epoch() - since;
}

void Ending::end(Rank& rank, const End& end) {
  const bool is_last = left_ == 1 && finished_ + 1 < ranks_.size();  // the threads of other ranks may still make calls
  if (rank.ended || rank.finished || is_last || !end()) return;
  rank.ended = true;
  --left_;
}

void Ending::end_woken() {
  if (!end_kept_) return;
  for (Rank& rank : ranks_) {
    if (rank.woken) end(rank, rank.woken);
  }
}

void Ending::wake(std::size_t rank, End end) {
  ranks_[rank].closed = true;
  const std::lock_guard lock(mutex_);
  if (ranks_[rank].finished) return;
  ranks_[rank].woken = std::move(end);
  end_woken();
}

void Ending::retry() {
  const std::lock_guard lock(mutex_);
  end_woken();
}

void Ending::end_call(std::size_t rank, const End& end) {
  ranks_[rank].closed = true;
  const std::lock_guard lock(mutex_);
  this->end(ranks_[rank], end);
}

std::function<void()> Ending::finish(std::size_t rank, std::function<void()> end) {
  Rank& mine = ranks_[rank];
  mine.closed = true;
  const std::lock_guard lock(mutex_);
  if (mine.finished) return {};
  mine.finished = true;
  mine.woken = {};
  if (!mine.ended && !end_kept_) {
    end_kept_ = std::move(end);
    end_woken();
  } else if (!mine.ended) {
    mine.ended = true;
    --left_;
    end();
  }
  if (++finished_ < ranks_.size()) return {};
  return std::exchange(end_kept_, {});
}

}  // namespace pmaptrain::gpu
