#include "core/runtime/cpu/barrier.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace pmaptrain {
namespace {

// A hypervisor takes a processor away that pauses in a loop for more than about a microsecond (pause-loop exiting), and
// gives it back some 50 µs later: too late for steps of a few microseconds.
constexpr int eager_spins = 2048;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

void Barrier::arrive_and_wait() {
  // In this order: a thread that reads the generation of break_all sees the flag; one that reads an older one is woken.
  const std::uint32_t generation = generation_.load(std::memory_order_acquire);
  if (broken_.load(std::memory_order_acquire)) throw BrokenBarrier();
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    // Sequentially consistent, as the library's code that follows: notify_all() wakes no thread where it counts no
    // waiter, and a waiter counts itself before it reads the generation for the last time. A weaker store could become
    // visible after the count was read; then a waiter would sleep for good.
    generation_.store(generation + 1, std::memory_order_seq_cst);
    generation_.notify_all();
    return;
  }
  for (int i = 0; i < spins_ && generation_.load(std::memory_order_acquire) == generation; ++i) {
    if (i >= eager_spins) pause();
  }
  while (generation_.load(std::memory_order_acquire) == generation) generation_.wait(generation);
  if (broken_.load(std::memory_order_acquire)) throw BrokenBarrier();
}

void Barrier::break_all() {
  broken_.store(true, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_seq_cst);
  generation_.notify_all();
}

}  // namespace pmaptrain
