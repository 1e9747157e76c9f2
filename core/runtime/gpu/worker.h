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

// The progress of a module's workers, and the first failure.
class Progress {
 public:
  explicit Progress(int workers) : done_(static_cast<std::size_t>(workers)) {}

  void advance(int worker, std::int64_t ticket);
  // Stores a failure if it is the first. Returns whether it was.
  bool fail(std::int64_t ticket, std::exception_ptr failure);
  // Marks a ticket as failed whose work is skipped after an earlier failure.
  void skip(std::int64_t ticket);
  bool has_failed() const;
  bool done(std::int64_t ticket) const;
  // Returns when all workers have done the ticket. Throws the failure of this or of an earlier ticket.
  void wait(std::int64_t ticket);

 private:
  std::int64_t least() const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::int64_t> done_;  // by worker: the last ticket that is done
  std::exception_ptr failure_;
  std::int64_t failed_ = 0;  // the ticket that failed
};

class Worker {
 public:
  // Opens the device on a new thread, and calls `make` there to create its executor. `failed` is called with the
  // message of the module's first failure.
  Worker(Platform& platform, int gpu, int module, Progress& progress,
         std::function<std::unique_ptr<Executor>(Device&)> make, std::function<void(const std::string&)> failed);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Returns when the executor exists, or when creating it has failed. Progress then has the failure as that of ticket
  // 0.
  void wait_for_start();
  // The three steps of shutdown. All workers of a module must finish a step before the next one begins. end() asks the
  // worker to stop after the queued work. wait_for_end() returns when that work is done, or has failed and no
  // collective waits for this GPU any more. close() destroys the device.
  void end();
  void wait_for_end();
  void close();
  // Adds work. `work` queues device calls and returns. `finish` is called when the device has done them, before the
  // ticket is done. Later work may be queued in between.
  void add(std::int64_t ticket, std::function<void(Executor&)> work, std::function<void(Executor&)> finish = {});
  // Valid if the start did not fail.
  Executor& executor() { return *executor_; }
  // May be called on any thread.
  void abort(const std::string& reason) noexcept;

 private:
  struct Item {
    std::int64_t ticket = 0;
    std::function<void(Executor&)> work, finish;
  };

  void run(Platform& platform, int module, const std::function<std::unique_ptr<Executor>(Device&)>& make);
  // After a failure, this GPU joins no more collectives. Aborts its communicators, because other GPUs may be blocked in
  // calls that wait for it. Called on the worker's thread.
  void end_collectives();
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
  bool ends_ = false, closes_ = false;                               // requests from the owner
  bool has_begun_ = false, has_ended_ = false, is_aborted_ = false;  // states of the worker
  std::unique_ptr<Device> device_;
  std::unique_ptr<Executor> executor_;
  std::thread thread_;
};

}  // namespace pmaptrain::gpu
