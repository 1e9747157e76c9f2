// CUDA's built-ins on the host, for tests. A grid runs block by block on the calling thread. The threads of a block are
// fibers, which switch only at barriers and where the lanes of a warp exchange values, in an order that the caller
// chooses. A kernel that lacks a barrier gives different results in different orders. Shared memory is filled with
// NaNs. It is an error if threads of a block wait at different barriers, or if a thread never reaches a barrier at
// which others wait; so it is for the lanes of a warp.
//
// Only sources that contain kernels may include this file, because it defines macros with CUDA's names.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#if !defined(__x86_64__) && !defined(PMAPTRAIN_SIMT_UCONTEXT)
#define PMAPTRAIN_SIMT_UCONTEXT
#endif
#if defined(PMAPTRAIN_SIMT_UCONTEXT)
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace pmaptrain::simt {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// The order in which the blocks of a grid, and the threads of a block between two barriers, run.
enum class Order : std::uint8_t { forward, reverse, shuffled };

struct Launch {
  Dim3 grid;
  unsigned threads = 1;  // threads per block
  Order order = Order::forward;
  unsigned seed = 0;                 // for the shuffled order
  std::size_t shared_bytes = 48000;  // limit for each block
  int forgotten_barrier = -1;        // to test the tests: no thread waits at its barrier with this number, from 0
};

// Yields the numbers 0 to count - 1 in the launch's order.
class RunOrder {
 public:
  RunOrder(const Launch& launch, unsigned salt) : order_(launch.order), random_(launch.seed + salt) {}

  const std::vector<unsigned>& next(unsigned count) {
    numbers_.resize(count);
    std::iota(numbers_.begin(), numbers_.end(), 0U);
    if (order_ == Order::reverse) std::reverse(numbers_.begin(), numbers_.end());
    if (order_ == Order::shuffled) std::shuffle(numbers_.begin(), numbers_.end(), random_);
    return numbers_;
  }

 private:
  Order order_;
  std::minstd_rand random_;
  std::vector<unsigned> numbers_;
};

#if defined(PMAPTRAIN_SIMT_UCONTEXT)

struct Context {
  ucontext_t place{};
  void prepare(std::byte* stack, std::size_t size, void (*entry)()) {
    getcontext(&place);
    place.uc_stack.ss_sp = stack;
    place.uc_stack.ss_size = size;
    makecontext(&place, entry, 0);
  }
};
inline void switch_context(Context& from, Context& to) { swapcontext(&from.place, &to.place); }

#else

// Pushes the callee-saved registers and switches stacks. It makes no system call and takes some nanoseconds.
__attribute__((naked, noinline)) inline void switch_stacks(void** /*from*/, void* /*to*/) {
  asm("pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
      "movq %rsp, (%rdi)\n movq %rsi, %rsp\n"
      "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n ret\n");
}

struct Context {
  void* stack_pointer = nullptr;
  void prepare(std::byte* stack, std::size_t size, void (*entry)()) {
    void** top = reinterpret_cast<void**>(reinterpret_cast<std::uintptr_t>(stack + size) & ~std::uintptr_t{15});
    *--top = nullptr;  // the return address of entry()
    *--top = reinterpret_cast<void*>(entry);
    for (int registers = 0; registers < 6; ++registers) *--top = nullptr;
    stack_pointer = top;
  }
};
inline void switch_context(Context& from, Context& to) { switch_stacks(&from.stack_pointer, to.stack_pointer); }

#endif

class Block;

// A stack and a saved context. Threads of a block that do not wait at a barrier run on one fiber, one after another.
struct Fiber {
  static constexpr std::size_t bytes = std::size_t{32} << 10;
  std::unique_ptr<std::byte[]> stack{new std::byte[bytes]};
  Context context;
  void* fake_stack = nullptr;  // for the address sanitizer
};

struct Thread {
  enum class State : std::uint8_t { ready, waits, done } state = State::ready;
  unsigned index = 0;
  std::unique_ptr<Fiber> fiber;
  const void* barrier = nullptr;  // the barrier or the exchange at which it waits
  bool exchanges = false;         // whether that is an exchange of its warp
  int barriers = 0;               // number of barriers it has reached
  bool vote = false;
};

// What a lane gives to the others of its warp.
using LaneWords = std::array<std::uint32_t, 6>;
inline constexpr unsigned warp_lanes = 32;

// The values that the lanes of a warp exchange. A lane may be at the next exchange while others still read those of
// this one, but not further.
struct Warp {
  std::array<std::array<LaneWords, warp_lanes>, 2> words;
  unsigned arrived = 0, round = 0;
};

// The threads of one block, and its shared memory.
class Block {
 public:
  // The block, the thread and the index of the block that run now.
  static inline thread_local Block* current = nullptr;
  static inline thread_local Thread* current_thread = nullptr;
  static inline thread_local Dim3 index;

  Block(const Launch& of, const std::function<void()>& body)
      : launch(of),
        body_(body),
        run_order_(of, 0),
        threads_(of.threads),
        warps_((of.threads + warp_lanes - 1) / warp_lanes),
        memory_(of.shared_bytes) {}

  const Launch launch;

  void run(Dim3 block) {
    current = this;
    index = block;
    arrays_.clear();
    used_ = 0;
    for (unsigned i = 0; i < threads_.size(); ++i) {
      threads_[i] = {};
      threads_[i].index = i;
    }
    for (Warp& warp : warps_) warp.arrived = 0;
    while (run_ready_threads()) release_barrier();
    current = nullptr;
    if (failure_) std::rethrow_exception(failure_);
  }

  // The memory of a SHARED array. `site` identifies its declaration in the source.
  void* shared(const void* site, std::size_t bytes) {
    for (const auto& [known, offset] : arrays_) {
      if (known == site) return memory_.data() + offset;
    }
    const std::size_t offset = (used_ + 15) / 16 * 16;
    if (offset + bytes > memory_.size()) throw Error("a block asks for more shared memory than it may have");
    used_ = offset + bytes;
    arrays_.emplace_back(site, offset);
    std::memset(memory_.data() + offset, 0xff, bytes);
    return memory_.data() + offset;
  }

  // Waits at a barrier. Returns whether any thread of the block has passed a true `vote`.
  bool barrier(const void* site, bool vote) {
    if (current_thread->barriers++ == launch.forgotten_barrier) return vote;
    current_thread->state = Thread::State::waits;
    current_thread->barrier = site;
    current_thread->vote = vote;
    current_thread->exchanges = false;
    switch_to(*current_thread->fiber, next_ready());
    return any_vote_;
  }

  // Gives `mine` to the other lanes of the warp, and returns what they have given, by lane. The reference is valid up
  // to the next exchange of this lane.
  const std::array<LaneWords, warp_lanes>& exchange(const void* site, const LaneWords& mine) {
    const unsigned first = current_thread->index / warp_lanes * warp_lanes;
    Warp& warp = warps_[first / warp_lanes];
    std::array<LaneWords, warp_lanes>& all = warp.words[warp.round % 2];
    all[current_thread->index - first] = mine;
    current_thread->state = Thread::State::waits;
    current_thread->barrier = site;
    current_thread->exchanges = true;
    if (++warp.arrived == warp_lanes) {
      for (unsigned lane = first; lane < first + warp_lanes; ++lane) {
        if (threads_[lane].barrier != site) {
          throw Error("thread " + std::to_string(lane) + " is at another exchange than others of its warp");
        }
        threads_[lane].state = Thread::State::ready;
      }
      warp.arrived = 0;
      ++warp.round;
    }
    switch_to(*current_thread->fiber, next_ready());
    return all;
  }

 private:
  // Runs all threads that do not wait at a barrier, one after another, each until it ends or waits. Returns whether any
  // thread waits.
  bool run_ready_threads() {
    order_ = run_order_.next(static_cast<unsigned>(threads_.size()));
    next_ = 0;
    if (Thread* const first = next_ready()) begin(*first);
    return !failure_ && std::any_of(threads_.begin(), threads_.end(),
                                    [](const Thread& thread) { return thread.state != Thread::State::done; });
  }

  // The next thread that can run; null if all have run up to a barrier or their end, or if a thread has failed.
  Thread* next_ready() {
    while (next_ < order_.size() && !failure_) {
      Thread& thread = threads_[order_[next_++]];
      if (thread.state == Thread::State::ready) return &thread;
    }
    return nullptr;
  }

  // Lets all threads go on that wait at a barrier, unless the lanes of some warp can go on before.
  void release_barrier() {
    const auto is_ready = [](const Thread& thread) { return thread.state == Thread::State::ready; };
    if (std::any_of(threads_.begin(), threads_.end(), is_ready)) return;
    for (const Thread& thread : threads_) {
      if (thread.state == Thread::State::waits && thread.exchanges) {
        throw_in(thread, "waits for lanes of its warp that do not come");
      }
    }
    any_vote_ = false;
    const void* site = nullptr;
    for (Thread& thread : threads_) {
      if (thread.state == Thread::State::done) throw_in(thread, "has ended and others of its block wait at a barrier");
      if (site != nullptr && thread.barrier != site)
        throw_in(thread, "waits at another barrier than others of its block");
      site = thread.barrier;
      any_vote_ |= thread.vote;
      thread.state = Thread::State::ready;
    }
  }

  [[noreturn]] static void throw_in(const Thread& thread, const char* what) {
    current = nullptr;
    throw Error("thread " + std::to_string(thread.index) + " " + what);
  }

  // Switches from the stack of run_ready_threads() to a thread. Returns when no thread can run.
  void begin(Thread& thread) {
    if (thread.fiber == nullptr) thread.fiber = take_fiber();
    current_thread = &thread;
#if defined(__SANITIZE_ADDRESS__)
    void* fake_stack = nullptr;
    is_begun_ = true;
    __sanitizer_start_switch_fiber(&fake_stack, thread.fiber->stack.get(), Fiber::bytes);
    switch_context(caller_, thread.fiber->context);
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#else
    switch_context(caller_, thread.fiber->context);
#endif
  }

  // Switches from this fiber to `thread`, or to the caller if it is null.
  void switch_to(Fiber& fiber, Thread* thread) {
    if (thread != nullptr && thread->fiber == nullptr) thread->fiber = take_fiber();
    if (thread != nullptr) current_thread = thread;
    Context& to = thread != nullptr ? thread->fiber->context : caller_;
#if defined(__SANITIZE_ADDRESS__)
    if (thread != nullptr) {
      __sanitizer_start_switch_fiber(&fiber.fake_stack, thread->fiber->stack.get(), Fiber::bytes);
    } else {
      __sanitizer_start_switch_fiber(&fiber.fake_stack, caller_stack_, caller_bytes_);
    }
    switch_context(fiber.context, to);
    // When this fiber continues, it may run a thread of another block.
    current->arrive(fiber.fake_stack);
#else
    switch_context(fiber.context, to);
#endif
  }

#if defined(__SANITIZE_ADDRESS__)
  // Records the stack of the caller, if this fiber was entered from there.
  void arrive(void* fake_stack) {
    const void* stack = nullptr;
    std::size_t bytes = 0;
    __sanitizer_finish_switch_fiber(fake_stack, &stack, &bytes);
    if (!std::exchange(is_begun_, false)) return;
    caller_stack_ = stack;
    caller_bytes_ = bytes;
  }
#endif

  // The entry point of a fiber, which runs threads one after another.
  static void run_threads() {
#if defined(__SANITIZE_ADDRESS__)
    current->arrive(nullptr);
#endif
    while (true) {
      try {
        current->body_();
      } catch (...) {
        current->failure_ = std::current_exception();
      }
      current_thread->state = Thread::State::done;
      current->end_thread();
    }
  }

  // Ends the current thread. Returns when this fiber has another thread to run: at once, if the next thread has no
  // fiber yet.
  void end_thread() {
    Thread& ended = *current_thread;
    Thread* const next = next_ready();
    if (next != nullptr && next->fiber == nullptr) {
      next->fiber = std::move(ended.fiber);
      current_thread = next;
      return;
    }
    Fiber& fiber = *ended.fiber;
    idle_.push_back(std::move(ended.fiber));
    switch_to(fiber, next);
  }

  static std::unique_ptr<Fiber> take_fiber() {
    if (idle_.empty()) {
      auto fiber = std::make_unique<Fiber>();
      fiber->context.prepare(fiber->stack.get(), Fiber::bytes, run_threads);
      return fiber;
    }
    std::unique_ptr<Fiber> fiber = std::move(idle_.back());
    idle_.pop_back();
    return fiber;
  }

  // Fibers without a thread, for this block and later ones.
  static inline thread_local std::vector<std::unique_ptr<Fiber>> idle_;

  const std::function<void()>& body_;
  RunOrder run_order_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<std::byte> memory_;
  std::vector<std::pair<const void*, std::size_t>> arrays_;
  std::size_t used_ = 0;
  bool any_vote_ = false;
  std::vector<unsigned> order_;  // the order in which run_ready_threads() runs the threads
  std::size_t next_ = 0;         // index in order_
  std::exception_ptr failure_;
  Context caller_;
#if defined(__SANITIZE_ADDRESS__)
  bool is_begun_ = false;  // whether the next fiber is entered from the caller's stack
  const void* caller_stack_ = nullptr;
  std::size_t caller_bytes_ = 0;
#endif
};

// Runs `body` once for each thread of a grid. Throws Error, or an exception of `body`.
inline void launch(const Launch& launch, const std::function<void()>& body) {
  if (launch.threads == 0 || launch.threads > 1024) throw Error("a block has 1 to 1024 threads");
  const Dim3 grid = launch.grid;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) throw Error("a grid has at least one block");
  Block block(launch, body);
  RunOrder run_order(launch, 1);
  for (const unsigned b : run_order.next(grid.x * grid.y * grid.z)) {
    block.run({b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y});
  }
}

struct ThreadIndex {
  unsigned x, y = 0, z = 0;
};

}  // namespace pmaptrain::simt

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define threadIdx (pmaptrain::simt::ThreadIndex{pmaptrain::simt::Block::current_thread->index})
#define blockIdx (pmaptrain::simt::Block::index)
#define blockDim (pmaptrain::simt::Dim3{pmaptrain::simt::Block::current->launch.threads})
#define gridDim (pmaptrain::simt::Block::current->launch.grid)
#define __syncthreads() static_cast<void>(__syncthreads_or(false))
// Each place in the source is a separate barrier.
#define __syncthreads_or(vote)                                         \
  [](bool simt_vote) {                                                 \
    static char site;                                                  \
    return pmaptrain::simt::Block::current->barrier(&site, simt_vote); \
  }(vote)
// The words of all lanes of a warp, by lane. Each place in the source is a separate exchange.
#define PMAPTRAIN_EXCHANGE(...)                                    \
  [](const pmaptrain::simt::LaneWords& mine) -> const auto& {      \
    static char site;                                              \
    return pmaptrain::simt::Block::current->exchange(&site, mine); \
  }                                                                \
  (pmaptrain::simt::LaneWords{__VA_ARGS__})
#define SHARED(type, name, count) \
  static char name##_site;        \
  type* const name = static_cast<type*>(pmaptrain::simt::Block::current->shared(&name##_site, sizeof(type) * (count)))
