#include "core/runtime/cpu/team.h"

#include <string>
#include <system_error>

#include "core/base/error.h"
#include "core/base/machine.h"
#include "core/base/signals.h"

namespace pmaptrain::cpu {

Team::Team(int count)
    : count_(count),
      barrier_(count, may_spin(count, allowed_cores())),
      run_barrier_(count, may_spin(count, allowed_cores())) {
  threads_.reserve(static_cast<std::size_t>(count));
  try {
    const BlockSignals blocked;
    for (int w = 1; w < count; ++w) threads_.emplace_back([this, w] { serve(w); });
  } catch (const std::system_error& error) {
    const std::size_t failed = threads_.size() + 2;  // number of the failed thread, counted with the caller's own
    give_up();
    fail_resource("thread " + std::to_string(failed) + " of " + std::to_string(count) +
                      " could not be started: " + error.code().message(),
                  "fewer workers (mesh.workers, --workers) need fewer threads");
  } catch (...) {
    give_up();
    throw;
  }
}

void Team::give_up() {
  run_barrier_.break_all();
  for (std::thread& thread : threads_) thread.join();
}

Team::~Team() {
  if (threads_.empty()) return;
  job_ = {};
  run_barrier_.arrive_and_wait();
  for (std::thread& thread : threads_) thread.join();
}

void Team::start(Job job) {
  rethrow();
  job_ = job;
  if (count_ > 1) run_barrier_.arrive_and_wait();
  carry_out(0);
  if (count_ > 1) run_barrier_.arrive_and_wait();
  rethrow();
}

void Team::serve(int worker) noexcept {
  try {
    while (true) {
      run_barrier_.arrive_and_wait();
      if (job_.function == nullptr) return;
      carry_out(worker);
      run_barrier_.arrive_and_wait();
    }
  } catch (const BrokenBarrier&) {  // not all threads could be started
  }
}

void Team::carry_out(int worker) noexcept {
  try {
    job_.function(job_.context, worker);
  } catch (const BrokenBarrier&) {
  } catch (...) {
    const std::scoped_lock lock(failure_mutex_);
    if (!failure_) failure_ = std::current_exception();
    barrier_.break_all();
  }
}

void Team::rethrow() {
  const std::scoped_lock lock(failure_mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace pmaptrain::cpu
