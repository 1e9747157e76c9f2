// Decides which thread aborts which rank of a NCCL communicator after a failure, and when.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

namespace pmaptrain::gpu {

// Each rank has a thread, which makes the calls of the library for it. A call that waits for an absent rank returns
// only when another thread aborts the calling rank. When the last rank is aborted, NCCL frees what the ranks of this
// process share, and first waits until no graph contains their collectives. So one rank is kept alive until the threads
// of all ranks have finished: then they make no calls and own no graphs.
class AbortCoordinator {
 public:
  explicit AbortCoordinator(std::size_t ranks) : ranks_(ranks), alive_(ranks) {}

  // A rank's thread calls enter() before each call of the library, and leave() after it. If enter() returns false, the
  // rank has been aborted or is being aborted, and the call must not be made.
  bool enter(std::size_t rank);
  void leave(std::size_t rank);
  // How long ago the rank entered its current call; 0 if it is in none.
  std::chrono::duration<double> time_in_call(std::size_t rank) const;

  // A function that aborts one rank in the library. It returns false if that is not possible yet. It is called on any
  // thread, until the rank has finished, and must not block.
  using AbortRank = std::function<bool()>;

  // Called on another thread than the rank's, after a failure. Aborts the rank as soon as another rank has finished and
  // is kept alive.
  void abort_when_safe(std::size_t rank, AbortRank abort_rank);
  // Tries again to abort the ranks for which abort_when_safe() was called and which could not be aborted yet.
  void retry_aborts();
  // Called on another thread than the rank's, if a call of the rank takes too long. Aborts the rank at once, except
  // when it is the last one that is alive and threads of other ranks have not finished: they may still make calls.
  void abort_stuck_call(std::size_t rank, const AbortRank& abort_rank);
  // Called on the rank's own thread, outside its calls and after its graphs have been destroyed. Calls `abort_rank`,
  // unless the rank has been aborted. The first rank that finishes without having been aborted is kept alive instead:
  // its `abort_rank` is returned to the thread that finishes last, which must call it. All other threads get an empty
  // function. The returned function waits for work of all GPUs. So a thread calls finish() for its ranks in all
  // communicators first, and then the returned functions.
  [[nodiscard]] std::function<void()> finish(std::size_t rank, std::function<void()> abort_rank);

 private:
  struct Rank {
    std::atomic<std::chrono::steady_clock::rep> inside_since = 0;  // when the current call began; 0: there is none
    std::atomic<bool> closed = false;                              // whether enter() refuses further calls
    bool aborted = false, finished = false;
    AbortRank pending_abort = {};  // set by abort_when_safe()
  };
  // Aborts a rank, unless it has been aborted, has finished, or is the last one while other threads may make calls.
  void try_abort(Rank& rank, const AbortRank& abort_rank);
  void try_pending_aborts();

  std::deque<Rank> ranks_;
  std::mutex mutex_;  // protects all members but the atomics; no thread holds it inside a call of the library
  std::size_t alive_, finished_ = 0;       // numbers of ranks that are not aborted, and whose threads have finished
  std::function<void()> abort_kept_rank_;  // aborts the rank that is kept alive
};

}  // namespace pmaptrain::gpu
