// Decides when the ranks of a communicator are aborted while their threads may be inside calls of the library.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

namespace pmaptrain::gpu {

// A call that waits for an absent rank returns only when its own rank is aborted, which another thread must do. NCCL
// frees the shared resources of a process with the last rank, and first waits until no graph contains their
// collectives. So one rank is kept alive until all threads have finished: then none makes calls or owns graphs.
class Ending {
 public:
  explicit Ending(std::size_t ranks) : ranks_(ranks), left_(ranks) {}

  // Must surround each call of a rank, on its thread. enter() returns false if the rank has been aborted or is about to
  // be; then the call must not be made.
  bool enter(std::size_t rank);
  void leave(std::size_t rank);
  // For how long the rank has been inside its current call; 0 if it is in none.
  std::chrono::duration<double> lasted(std::size_t rank) const;

  // Aborts a rank in the library. Returns false if that is not possible yet. It may be called on any thread until its
  // rank has finished, and must not block.
  using End = std::function<bool()>;

  // Called on another thread after a failure. Aborts the rank as soon as some other rank has finished and is kept
  // alive.
  void wake(std::size_t rank, End end);
  // Tries again to abort ranks for which wake() was called.
  void retry();
  // Called on another thread if a call takes too long. Aborts the rank at once. The last rank is aborted only when the
  // threads of all others have finished: then its own call is all that keeps the process from ending.
  void end_call(std::size_t rank, const End& end);
  // Called on the rank's own thread, outside its calls and after its graphs are destroyed. Calls `end` unless the rank
  // has been aborted or is the one that is kept alive. On the thread that finishes last, returns the `end` of the rank
  // that was kept alive; on other threads, returns an empty function. The returned function waits for work of all GPUs,
  // so the thread first calls finish() for its rank in every communicator, and only then the function.
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
  std::mutex mutex_;  // protects all members but the atomics; no thread holds it inside a call of the library
  std::size_t left_, finished_ = 0;
  std::function<void()> end_kept_;  // aborts the rank that is kept alive
};

}  // namespace pmaptrain::gpu
