// The thread of one GPU: it carries out what is queued, in order, and says how far its device is.
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

// What the workers of a module share: how far they are, and the first failure.
class Progress {
 public:
  explicit Progress(int workers) : done_(static_cast<std::size_t>(workers)) {}

  void advance(int worker, std::int64_t ticket);
  // Keeps the first one. Returns whether this is it.
  bool fail(std::int64_t ticket, std::exception_ptr failure);
  // After a failure: this ticket's work is not carried out, so it has failed too.
  void skip(std::int64_t ticket);
  bool has_failed() const;
  bool done(std::int64_t ticket) const;
  // Returns when all workers are done with the ticket; throws the failure of it or of an earlier one.
  void wait(std::int64_t ticket);

 private:
  std::int64_t least() const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::int64_t> done_;  // by worker: the last ticket
  std::exception_ptr failure_;
  std::int64_t failed_ = 0;  // its ticket
};

class Worker {
 public:
  // Opens the device of the module on the new thread and lets `make` set up its executor there. `failed` is called with
  // what a work has failed by, once for the module.
  Worker(Platform& platform, int gpu, int module, Progress& progress,
         std::function<std::unique_ptr<Executor>(Device&)> make, std::function<void(const std::string&)> failed);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Returns when the executor is set up, or that has failed, which Progress then knows as the failure of ticket 0.
  void wait_for_start();
  // Three steps, each of all workers of a module before the next one. What is queued is carried out, and no more; that
  // is done, or has failed and collectives do not wait for this GPU any more; the device ends.
  void end();
  void wait_for_end();
  void close();
  // `work` queues calls of the device and returns; `finish` follows when the device is done with them, and before the
  // ticket is. What is added later may be queued in between.
  void add(std::int64_t ticket, std::function<void(Executor&)> work, std::function<void(Executor&)> finish = {});
  // After a start that did not fail.
  Executor& executor() { return *executor_; }
  // On any thread.
  void abort(const std::string& reason) noexcept;

 private:
  struct Item {
    std::int64_t ticket = 0;
    std::function<void(Executor&)> work, finish;
  };

  void run(Platform& platform, int module, const std::function<std::unique_ptr<Executor>(Device&)>& make);
  // After a failure, on the worker's thread: nothing comes any more that collectives of this GPU wait for, and they may
  // hold other GPUs inside of calls.
  void end_collectives();
  void carry_out();
  void carry_out(std::int64_t ticket, const std::function<void(Executor&)>& work);
  std::optional<Item> next(bool wait);
  // Returns when there is work, or at the latest after this time.
  void wait_for_work(std::chrono::nanoseconds at_most);

  const int gpu_;
  Progress& progress_;
  const std::function<void(const std::string&)> failed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> queue_;
  bool ends_ = false, closes_ = false;                               // asked for
  bool has_begun_ = false, has_ended_ = false, is_aborted_ = false;  // told
  std::unique_ptr<Device> device_;
  std::unique_ptr<Executor> executor_;
  std::thread thread_;
};

}  // namespace pmaptrain::gpu
