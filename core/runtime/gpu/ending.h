// When the ranks of a communicator end, whose threads may be inside of a call of the library.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

namespace pmaptrain::gpu {

// A call that does not return, because another rank does not come, ends when its communicator does, which then happens
// on another thread. NCCL frees what all ranks of a process have with the last of them: that one has to wait until no
// thread is inside of a call any more.
class Ending {
 public:
  explicit Ending(std::size_t ranks) : ranks_(ranks), left_(ranks) {}

  // Around each call of a rank, on its thread. enter() returns false, and the call must not be made, when the rank has
  // ended or is to end.
  bool enter(std::size_t rank);
  void leave(std::size_t rank);
  // How long the call that a rank is inside of has lasted; 0 where there is none.
  std::chrono::duration<double> lasted(std::size_t rank) const;
  // Whether it has ended or is to end.
  bool is_closed(std::size_t rank) const { return ranks_[rank].closed; }

  // Both call `end` for a rank unless that has been done.
  // On another thread. The last rank ends on its own thread, unless that is inside of a call.
  void wake(std::size_t rank, const std::function<void()>& end);
  // On the rank's own thread, outside of its calls.
  void finish(std::size_t rank, const std::function<void()>& end);

 private:
  struct Rank {
    std::atomic<std::chrono::steady_clock::rep> inside_since = 0;
    std::atomic<bool> closed = false, ended = false;
  };

  std::deque<Rank> ranks_;
  std::mutex mutex_;  // of what ends; no thread holds it while it is inside of a call
  std::size_t left_;
};

}  // namespace pmaptrain::gpu
