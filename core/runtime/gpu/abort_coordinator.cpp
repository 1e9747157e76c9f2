#include "core/runtime/gpu/abort_coordinator.h"

#include <utility>

namespace pmaptrain::gpu {

// enter() stores `inside_since` and then reads `closed`. A thread that aborts the rank stores `closed` and then reads
// `inside_since`. So at least one of the two threads sees what the other has stored.
bool AbortCoordinator::enter(std::size_t rank) {
  ranks_[rank].inside_since = std::chrono::steady_clock::now().time_since_epoch().count();
  if (!ranks_[rank].closed) return true;
  leave(rank);
  return false;
}

void AbortCoordinator::leave(std::size_t rank) { ranks_[rank].inside_since = 0; }

std::chrono::duration<double> AbortCoordinator::time_in_call(std::size_t rank) const {
  const std::chrono::steady_clock::duration since(ranks_[rank].inside_since);
  if (since.count() == 0) return {};
  return std::chrono::steady_clock::now().time_since_epoch() - since;
}

void AbortCoordinator::try_abort(Rank& rank, const AbortRank& abort_rank) {
  const bool is_last = alive_ == 1 && finished_ + 1 < ranks_.size();  // the threads of other ranks may still make calls
  if (rank.aborted || rank.finished || is_last || !abort_rank()) return;
  rank.aborted = true;
  --alive_;
}

void AbortCoordinator::try_pending_aborts() {
  if (!abort_kept_rank_) return;
  for (Rank& rank : ranks_) {
    if (rank.pending_abort) try_abort(rank, rank.pending_abort);
  }
}

void AbortCoordinator::abort_when_safe(std::size_t rank, AbortRank abort_rank) {
  ranks_[rank].closed = true;
  const std::lock_guard lock(mutex_);
  if (ranks_[rank].finished) return;
  ranks_[rank].pending_abort = std::move(abort_rank);
  try_pending_aborts();
}

void AbortCoordinator::retry_aborts() {
  const std::lock_guard lock(mutex_);
  try_pending_aborts();
}

void AbortCoordinator::abort_stuck_call(std::size_t rank, const AbortRank& abort_rank) {
  ranks_[rank].closed = true;
  const std::lock_guard lock(mutex_);
  try_abort(ranks_[rank], abort_rank);
}

std::function<void()> AbortCoordinator::finish(std::size_t rank, std::function<void()> abort_rank) {
  Rank& mine = ranks_[rank];
  mine.closed = true;
  const std::lock_guard lock(mutex_);
  if (mine.finished) return {};
  mine.finished = true;
  mine.pending_abort = {};
  if (!mine.aborted && !abort_kept_rank_) {
    abort_kept_rank_ = std::move(abort_rank);
    try_pending_aborts();
  } else if (!mine.aborted) {
    mine.aborted = true;
    --alive_;
    abort_rank();
  }
  if (++finished_ < ranks_.size()) return {};
  return std::exchange(abort_kept_rank_, {});
}

}  // namespace pmaptrain::gpu
