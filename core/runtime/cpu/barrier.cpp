#include "core/runtime/cpu/barrier.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace pmaptrain {
namespace {

// The number of spins without a pause instruction. A virtual CPU that executes pauses for more than about a microsecond
// is descheduled by the hypervisor (pause-loop exiting) and resumes only some 50 µs later, which is too late for steps
// of a few microseconds.
constexpr int eager_spins = 2048;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

void Barrier::arrive_and_wait() {
  // The phase must be read before the flag: a thread that reads the phase set by break_all() then also sees
  // the flag, and a thread that reads an older one is woken.
  const std::uint32_t phase = phase_.load(std::memory_order_acquire);
  if (broken_.load(std::memory_order_acquire)) throw BrokenBarrier();
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    // This store must be sequentially consistent, like the library code that follows it. notify_all() does nothing if
    // it counts no waiters, and a waiter registers before it reads the phase for the last time. A weaker store
    // could become visible after notify_all() has counted; then a waiter would sleep forever.
    phase_.store(phase + 1, std::memory_order_seq_cst);
    phase_.notify_all();
    return;
  }
  for (int i = 0; i < spins_ && phase_.load(std::memory_order_acquire) == phase; ++i) {
    if (i >= eager_spins) pause();
  }
  while (phase_.load(std::memory_order_acquire) == phase) phase_.wait(phase);
  if (broken_.load(std::memory_order_acquire)) throw BrokenBarrier();
}

void Barrier::break_all() {
  broken_.store(true, std::memory_order_release);
  phase_.fetch_add(1, std::memory_order_seq_cst);
  phase_.notify_all();
}

}  // namespace pmaptrain
