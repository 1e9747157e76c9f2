// Threads that run one piece of work at a time together, and the statistics of what that took.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace pmaptrain::limits {

// A sense-reversing barrier that spins: the cheapest there is when every thread has a core of its own. Where other
// programs take the cores it gives way after some 50 µs, so that figures are bad but end.
class SpinBarrier {
 public:
  explicit SpinBarrier(int threads) : threads_(threads) {}
  SpinBarrier(const SpinBarrier&) = delete;
  SpinBarrier& operator=(const SpinBarrier&) = delete;

  void arrive_and_wait() {
    const std::uint32_t generation = generation_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      generation_.store(generation + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; generation_.load(std::memory_order_acquire) == generation; ++spins) {
      if (spins > 50000) std::this_thread::yield();
    }
  }

 private:
  const int threads_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> generation_{0};
};

// `size` threads, the caller's own being worker 0, each with one thread of OpenMP to itself.
class Team {
 public:
  using Work = std::function<void(int worker)>;

  explicit Team(int size);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  // Runs work(worker) on all workers at once and returns the seconds from the common start until the last is done.
  // `work` must not throw.
  double run(const Work& work);

 private:
  void serve(int worker);

  SpinBarrier barrier_;
  const Work* work_ = nullptr;  // null: the end
  std::vector<std::thread> threads_;
};

struct Seconds {
  double median = 0;
  double min = 0;
};

// Neither is empty.
Seconds statistics(std::vector<double> samples);

// Calls `sample`, which returns seconds, once to warm up and then for at least `seconds` and five times.
Seconds repeat(double seconds, const std::function<double()>& sample);

}  // namespace pmaptrain::limits
