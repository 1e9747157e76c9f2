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
  // Stores a failure of the work with this ticket if it is the first failure of the module. Returns whether it is.
  bool fail(std::int64_t ticket, std::exception_ptr failure);
  // Records that the work of a ticket was skipped because of the failure. wait() for this ticket then throws it too.
  void skip(std::int64_t ticket);
  bool has_failed() const;
  bool done(std::int64_t ticket) const;
  // Where the workers of a process wait, after all that may fail in one process alone, until the processes have agreed
  // that none has failed. pass_gate() returns when open_gate() has been called; if a worker fails before, it throws
  // Error (failed). wait_at_gate() returns when all workers wait in pass_gate(), or throws the failure.
  void pass_gate();
  void wait_at_gate();
  void open_gate();
  // Returns when all workers have done the work of this ticket. Throws the failure if it belongs to this ticket or to
  // an earlier one. A worker may never come back from a call that waits for one that has failed. So a failure is thrown
  // after time_to_stop() at the latest, whatever its ticket.
  void wait(std::int64_t ticket);
  // The same for at most this time. Returns whether the work is done.
  bool wait_for(std::int64_t ticket, std::chrono::milliseconds at_most);
  // How much of time_to_stop() is left since the failure.
  std::chrono::milliseconds left_to_stop() const;

 private:
  std::int64_t least_done() const;  // the last ticket that all workers have done

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::int64_t> done_;  // by worker: the last ticket that is done
  std::exception_ptr failure_;
  std::int64_t failed_ = 0;  // the earliest ticket whose work failed or was skipped
  std::chrono::steady_clock::time_point failed_at_;
  std::size_t at_gate_ = 0;
  bool is_gate_open_ = false;
};

// After a failure, how long the other GPUs have to come out of their calls: five seconds, or gpu_timeout() if that is
// less.
std::chrono::milliseconds time_to_stop();

// The message of an error, without what may help.
std::string message_of(const std::exception_ptr& failure);

class Worker {
 public:
  // Opens the device on a new thread, and calls `make` there to create its executor, which is the ticket 0. If work of
  // this worker is the first in the module to fail, `failed` is called with the message.
  // `gpu` is the number of the device, and of the worker in `progress`; see Platform::open().
  Worker(Platform& platform, int gpu, int module, const RanksHere& ranks, Progress& progress,
         std::function<std::unique_ptr<Executor>(Device&)> make, std::function<void(const std::string&)> failed);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The three steps of shutdown. The module makes each step for all of its workers before it begins the next step.
  // end() asks the worker to stop after the queued work. wait_for_end() returns whether that work is done or has
  // failed; it waits for at most the given time. close() destroys the device.
  void end();
  bool wait_for_end(std::chrono::milliseconds at_most);
  void close();
  // Adds work. `work` queues calls of the device and returns. When the device has done them, `finish` is called, and
  // then the ticket is done. Work of later tickets may be queued in the meantime.
  void add(std::int64_t ticket, std::function<void(Executor&)> work, std::function<void(Executor&)> finish = {});
  // Precondition: the ticket 0 is done, and creating the executor has not failed.
  Executor& executor() { return *executor_; }
  // Aborts the device of this worker (see Device::abort()), or keeps it from opening one. May be called on any thread.
  void abort(const std::string& reason) noexcept;
  // Throws Error (failed) if a call of the device waits for other ranks for too long (see Device::late_call()).
  void check_for_late_call();

 private:
  struct Item {
    std::int64_t ticket = 0;
    std::function<void(Executor&)> work, finish;
  };

  void run(Platform& platform, int module, const RanksHere& ranks,
           const std::function<std::unique_ptr<Executor>(Device&)>& make);
  void carry_out();
  void carry_out(std::int64_t ticket, const std::function<void(Executor&)>& work);
  std::optional<Item> next(bool wait);
  // Returns when there is work, or after `at_most`.
  void wait_for_work(std::chrono::nanoseconds at_most);

  const int gpu_;
  Progress& progress_;
  const std::function<void(const std::string&)> failed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> queue_;
  bool ends_ = false, closes_ = false;           // requests of end() and close()
  bool has_ended_ = false, is_aborted_ = false;  // states of the worker
  std::unique_ptr<Device> device_;
  std::unique_ptr<Executor> executor_;
  std::thread thread_;
};

}  // namespace pmaptrain::gpu
