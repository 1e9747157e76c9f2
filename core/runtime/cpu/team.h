// A fixed number of threads that run a function together.
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "core/runtime/cpu/barrier.h"

namespace pmaptrain::cpu {

class Team {
 public:
  // A team of `count` workers: the caller of run(), which is worker 0, and count - 1 threads. Throws Error (resource)
  // if a thread cannot be started.
  explicit Team(int count);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int count() const { return count_; }
  // A barrier for all workers, for use by the function that run() calls.
  Barrier& barrier() { return barrier_; }

  // Calls f(worker) on every worker and returns when all have finished. If a worker throws, workers that wait at the
  // barrier are released, and the first exception is thrown here and by every later call. Allocates nothing.
  template <class F>
  void run(F&& f) {
    start({[](void* context, int worker) { (*static_cast<std::remove_reference_t<F>*>(context))(worker); }, &f});
  }

 private:
  struct Job {
    void (*function)(void* context, int worker) = nullptr;
    void* context = nullptr;
  };
  void start(Job job);                  // runs a job on all workers
  void serve(int worker) noexcept;      // the function of a thread: runs one job after another
  void carry_out(int worker) noexcept;  // runs the job on one worker and stores its exception
  void rethrow();
  void give_up();  // ends the threads if not all could be started

  const int count_;
  Barrier barrier_;
  Barrier run_barrier_;  // the workers pass it at the begin and at the end of each job
  std::vector<std::thread> threads_;
  Job job_;  // an empty job ends the threads
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
};

}  // namespace pmaptrain::cpu
