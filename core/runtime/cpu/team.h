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
  // The caller of run() acts as worker 0. Throws Error (resource) if a thread cannot be started.
  explicit Team(int count);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int count() const { return count_; }
  // The barrier for the workers to use inside run().
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
  void start(Job job);
  void serve(int worker) noexcept;
  void carry_out(int worker) noexcept;
  void rethrow();
  void give_up();  // ends the threads if not all could be started

  const int count_;
  Barrier barrier_;
  Barrier host_;  // between the caller and the workers; each run passes it twice
  std::vector<std::thread> threads_;
  Job job_;  // an empty job ends the threads
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
};

}  // namespace pmaptrain::cpu
