// A fixed number of threads that carry out one function together, and the failures of any of them.
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
  // The calling thread is worker 0 while run() lasts. Throws Error (resource) when a thread cannot be started.
  explicit Team(int count);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int count() const { return count_; }
  // Among the workers, while they run.
  Barrier& barrier() { return barrier_; }

  // Calls f(worker) on every worker; returns when all have finished. The first exception of any is thrown, here and in
  // every later call: the others, waiting for it at the barrier, have then given up. Allocates nothing.
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
  void give_up();  // ends the threads where not all could be started

  const int count_;
  Barrier barrier_;
  Barrier host_;  // between the caller and the workers, twice a run
  std::vector<std::thread> threads_;
  Job job_;  // none: end
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
};

}  // namespace pmaptrain::cpu
