// When the ranks of a communicator end, whose threads may be inside of a call of the library.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

namespace pmaptrain::gpu {

// A call that does not return, because another rank does not come, ends when its rank does, which then happens on
// another thread. NCCL frees what all ranks of a process have with the last of them, and waits until no graph holds
// their collectives. So one rank is kept until all threads have finished: they make no calls and have no graphs.
class Ending {
 public:
  explicit Ending(std::size_t ranks) : ranks_(ranks), left_(ranks) {}

  // Around each call of a rank, on its thread. enter() returns false, and the call must not be made, when the rank has
  // ended or is to end.
  bool enter(std::size_t rank);
  void leave(std::size_t rank);
  // How long the call that a rank is inside of has lasted; 0 where there is none.
  std::chrono::duration<double> lasted(std::size_t rank) const;

  // Ends a rank in the library; returns false where that is not possible yet. It may be called on any thread until its
  // rank has finished, and must not wait.
  using End = std::function<bool()>;

  // On another thread, after a failure: the rank ends as soon as there is one to keep, which has finished.
  void wake(std::size_t rank, End end);
  // Tries again to end ranks that were woken.
  void retry();
  // On another thread, when a call lasts too long: the rank ends at once. The last rank ends so only when the threads
  // of all others have finished: then its own call is all that keeps the process from ending.
  void end_call(std::size_t rank, const End& end);
  // On the rank's own thread, outside of its calls and without graphs that have them. Calls `end` for a rank that has
  // not ended, except for the one that is kept. The last thread that comes gets the `end` of that rank, and calls it
  // after it has finished the ranks that it has in other communicators: it waits for what runs on all GPUs.
  [[nodiscard]] std::function<void()> finish(std::size_t rank, std::function<void()> end);

 private:
  struct Rank {
    std::atomic<std::chrono::steady_clock::rep> inside_since = 0;
    std::atomic<bool> closed = false;
    bool ended = false, finished = false;
    End woken = {};
  };
  void end(Rank& rank, const End& end);
  void end_woken();

  std::deque<Rank> ranks_;
  std::mutex mutex_;  // of all but the atomics; no thread holds it while it is inside of a call
  std::size_t left_, finished_ = 0;
  std::function<void()> end_kept_;  // of the rank that is kept
};

}  // namespace pmaptrain::gpu
