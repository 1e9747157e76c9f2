// The thread of one GPU. It queues work on its device, in order, and reports the device's progress.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/runtime/gpu/executor.h"

namespace pmaptrain::gpu {

// How far the workers of a module have come, and the first failure. Work is numbered by tickets, in the order in which
// the module queues it.
class Progress {
 public:
  // The ticket 0 is done when the workers have their executors.
  explicit Progress(int workers) : done_(static_cast<std::size_t>(workers), -1) {}

  // Records that a worker has done all work up to `ticket`.
  void advance(int worker, std::int64_t ticket);
  // Records that the work of a ticket has failed. The first failure of the module is that of all tickets. Returns
  // whether this is it.
  bool fail(std::int64_t ticket, std::exception_ptr failure);
  // Throws the failure, if there is one.
  void check() const;
  bool done(std::int64_t ticket) const;
  // Returns when all workers have done the work of this ticket. Throws the failure if it belongs to this ticket or to
  // an earlier one. A worker may never come back from a call that waits for one that has failed. So a failure is thrown
  // after time_to_stop() at the latest, whatever its ticket.
  void wait(std::int64_t ticket);
  // The same for at most this time. Returns whether the work is done.
  bool wait_for(std::int64_t ticket, std::chrono::milliseconds at_most);

 private:
  std::int64_t least_done() const;  // the last ticket that all workers have done

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::int64_t> done_;  // by worker: the last ticket that is done
  std::exception_ptr failure_;
  std::int64_t failed_ = 0;  // the earliest ticket whose work failed or was skipped
  std::chrono::steady_clock::time_point failed_at_;
};

// After a failure, how long the other GPUs have to come out of their calls: five seconds, or gpu_timeout() if that is
// less.
std::chrono::milliseconds time_to_stop();

class Worker {
 public:
  using Work = std::function<void(Executor&)>;

  // Opens the device on a new thread, and calls `make` there to create its executor, which is the ticket 0. If work
  // throws, or is skipped because of an earlier failure, `failed` is called while the exception is handled, and has to
  // tell `progress`. `gpu` is the number of the device, and of the worker in `progress`; see Platform::open().
  Worker(Platform& platform, int gpu, int module, const GpuRange& ranks, Progress& progress,
         std::function<std::unique_ptr<Executor>(Device&)> make, std::function<void(std::int64_t ticket)> failed);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Ends the thread after the queued work, and destroys the device.
  void close();
  // Adds work. `work` queues calls of the device and returns. When the device has done them, `finish` is called, and
  // then the ticket is done. Work of later tickets may be queued in the meantime.
  void add(std::int64_t ticket, Work work, Work finish = {});
  // Precondition: the ticket 0 is done, and creating the executor has not failed.
  Executor& executor() { return *executor_; }
  // Aborts the device of this worker (see Device::abort()), or keeps it from opening one. May be called on any thread.
  void abort(const std::string& reason) noexcept;
  // Throws Error (failed) if a call of the device waits for other ranks for too long (see Device::late_call()).
  void check_for_late_call();

 private:
  struct Item {
    std::int64_t ticket = 0;
    Work work, finish;
    Event queued = {};  // after the calls of the device that `work` has queued
  };

  void run(Platform& platform, int module, const GpuRange& ranks,
           const std::function<std::unique_ptr<Executor>(Device&)>& make);
  void carry_out();
  void carry_out(std::int64_t ticket, const Work& work);
  // Waits for the next work: for `at_most`, if it is given, and until close(). Returns nothing if there is none.
  std::optional<Item> next(std::optional<std::chrono::nanoseconds> at_most);

  const int gpu_;
  Progress& progress_;
  const std::function<void(std::int64_t)> failed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> queue_;
  bool closes_ = false, is_aborted_ = false;  // close() and abort() have been called
  std::unique_ptr<Device> device_;
  std::unique_ptr<Executor> executor_;
  std::thread thread_;
};

}  // namespace pmaptrain::gpu
