#include "core/runtime/gpu/ending.h"

#include <algorithm>
#include <thread>

#include "core/runtime/gpu/environment.h"

namespace pmaptrain::gpu {

// In this order, and wake() in the other one: one of the two sees what the other has written.
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

void Ending::wake(std::size_t rank, const std::function<void()>& end) {
  Rank& mine = ranks_[rank];
  mine.closed = true;
  const std::lock_guard lock(mutex_);
  if (mine.ended || (left_ == 1 && mine.inside_since == 0)) return;
  mine.ended = true;
  --left_;
  end();
}

void Ending::finish(std::size_t rank, const std::function<void()>& end) {
  Rank& mine = ranks_[rank];
  mine.closed = true;
  // Not after the lock: the last rank may take its time, and wait for what this thread does next.
  if (mine.ended) return;
  {
    const std::lock_guard lock(mutex_);
    if (mine.ended.exchange(true)) return;
    if (--left_ > 0) return end();
  }
  // All others have ended, so the calls that they are inside of return.
  const auto give_up = std::chrono::steady_clock::now() + patience();
  const auto is_inside = [](const Rank& other) { return other.inside_since != 0; };
  while (std::any_of(ranks_.begin(), ranks_.end(), is_inside) && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  end();
}

}  // namespace pmaptrain::gpu
