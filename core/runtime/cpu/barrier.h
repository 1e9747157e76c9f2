// A reusable barrier for a fixed number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <stdexcept>

namespace pmaptrain {

// Thrown from every wait at the barrier after another worker has failed.
struct BrokenBarrier : std::runtime_error {
  BrokenBarrier() : std::runtime_error("another worker failed") {}
};

// Whether workers may spin while they wait. If there are more workers than cores, a spinning worker takes time from
// workers that compute.
inline bool may_spin(int workers, double cores) { return workers <= cores; }

// A barrier that takes no lock and allocates nothing. A waiting thread first spins for a short time, because the others
// usually arrive within microseconds; then it sleeps in the operating system.
class Barrier {
 public:
  explicit Barrier(int threads, bool may_spin) : threads_(threads), spins_(may_spin ? 2500 : 0) {}

  // Returns once all threads have arrived. Everything they wrote before arriving is then visible. Throws BrokenBarrier.
  void arrive_and_wait();

  // How often all threads have met at this barrier, modulo 2^32.
  std::uint32_t completed_phases() const { return phase_.load(std::memory_order_acquire); }

  // Makes all present and future waits throw BrokenBarrier.
  void break_all();

 private:
  const int threads_;
  const int spins_;
  std::atomic<int> arrived_{0};
  std::atomic<std::uint32_t> phase_{0};
  std::atomic<bool> broken_{false};
};

}  // namespace pmaptrain
