// A reusable barrier for a fixed number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <stdexcept>

namespace pmaptrain {

// Another worker failed: every wait at the barrier ends with this.
struct BrokenBarrier : std::runtime_error {
  BrokenBarrier() : std::runtime_error("another worker failed") {}
};

// Whether workers may spin while they wait. With more workers than the cores that are allowed, spinning takes time from
// the workers that compute.
inline bool may_spin(int workers, double cores) { return workers <= cores; }

// Takes no lock and allocates nothing. A waiter spins for a short while, since a worker that is not delayed arrives
// within microseconds, and then sleeps in the kernel.
class Barrier {
 public:
  explicit Barrier(int threads, bool may_spin) : threads_(threads), spins_(may_spin ? 2500 : 0) {}

  // Returns once all threads have arrived; what they wrote before is visible after. Throws BrokenBarrier.
  void arrive_and_wait();

  // How often all threads have met.
  std::uint32_t barriers() const { return generation_.load(std::memory_order_acquire); }

  // Ends all present and future waits with BrokenBarrier.
  void break_all();

 private:
  const int threads_;
  const int spins_;
  std::atomic<int> arrived_{0};
  std::atomic<std::uint32_t> generation_{0};
  std::atomic<bool> broken_{false};
};

}  // namespace pmaptrain
