#include "core/runtime/gpu/worker.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/runtime/gpu/environment.h"

namespace pmaptrain::gpu {
namespace {

// The maximum number of tickets whose work is queued on the device but not done.
constexpr std::size_t most_ahead = Executor::max_pending_reads;

}  // namespace

void Progress::advance(int worker, std::int64_t ticket) {
  const std::lock_guard lock(mutex_);
  done_[static_cast<std::size_t>(worker)] = ticket;
  changed_.notify_all();
}

bool Progress::fail(std::int64_t ticket, std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  if (failure_) {
    failed_ = std::min(failed_, ticket);
    return false;
  }
  failure_ = std::move(failure);
  failed_ = ticket;
  failed_at_ = std::chrono::steady_clock::now();
  changed_.notify_all();
  return true;
}

void Progress::check() const {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

std::int64_t Progress::least_done() const { return *std::min_element(done_.begin(), done_.end()); }

bool Progress::done(std::int64_t ticket) const {
  const std::lock_guard lock(mutex_);
  return least_done() >= ticket;
}

void Progress::wait(std::int64_t ticket) {
  while (!wait_for(ticket, std::chrono::hours(1))) continue;
}

bool Progress::wait_for(std::int64_t ticket, std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  const auto is_done = [&] { return least_done() >= ticket; };
  changed_.wait_for(lock, at_most, [&] { return is_done() || failure_; });
  if (!failure_) return is_done();
  if (!changed_.wait_until(lock, failed_at_ + time_to_stop(), is_done) || failed_ <= ticket) {
    std::rethrow_exception(failure_);
  }
  return true;
}

std::chrono::milliseconds time_to_stop() {
  const std::chrono::duration<double> most = std::chrono::seconds(5);
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::min(most, gpu_timeout()));
}

Worker::Worker(Platform& platform, int gpu, int module, const GpuRange& ranks, Progress& progress,
               std::function<std::unique_ptr<Executor>(Device&)> make, std::function<void(std::int64_t)> failed)
    : gpu_(gpu), progress_(progress), failed_(std::move(failed)) {
  thread_ =
      std::thread([this, &platform, module, ranks, make = std::move(make)] { run(platform, module, ranks, make); });
}

Worker::~Worker() { close(); }

void Worker::close() {
  {
    const std::lock_guard lock(mutex_);
    closes_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Worker::add(std::int64_t ticket, Work work, Work finish) {
  const std::lock_guard lock(mutex_);
  queue_.push_back({ticket, std::move(work), std::move(finish)});
  changed_.notify_all();
}

void Worker::abort(const std::string& reason) noexcept {
  const std::lock_guard lock(mutex_);
  is_aborted_ = true;
  if (device_) device_->abort(reason);
}

void Worker::check_for_late_call() {
  const std::lock_guard lock(mutex_);
  if (!device_) return;
  if (const std::string call = device_->late_call(); !call.empty()) {
    fail_running(call, "another rank did not come to it; PMAPTRAIN_GPU_TIMEOUT sets the seconds");
  }
}

void Worker::run(Platform& platform, int module, const GpuRange& ranks,
                 const std::function<std::unique_ptr<Executor>(Device&)>& make) {
  try {
    std::unique_ptr<Device> device = platform.open(gpu_, module, ranks);
    {
      const std::lock_guard lock(mutex_);
      device_ = std::move(device);
      if (is_aborted_) fail_running("another GPU has failed");
    }
    executor_ = make(*device_);
  } catch (...) {
    failed_(0);
  }
  progress_.advance(gpu_, 0);
  carry_out();
  executor_.reset();
  std::unique_ptr<Device> device;  // destroyed on the thread that owns it
  const std::lock_guard lock(mutex_);
  device = std::move(device_);
}

std::optional<Worker::Item> Worker::next(std::optional<std::chrono::nanoseconds> at_most) {
  std::unique_lock lock(mutex_);
  const auto is_over = [&] { return closes_ || !queue_.empty(); };
  if (at_most) {
    changed_.wait_for(lock, *at_most, is_over);
  } else {
    changed_.wait(lock, is_over);
  }
  if (queue_.empty()) return std::nullopt;
  Item item = std::move(queue_.front());
  queue_.pop_front();
  return item;
}

void Worker::carry_out(std::int64_t ticket, const Work& work) {
  try {
    progress_.check();  // without an executor there has been a failure
    work(*executor_);
  } catch (...) {
    failed_(ticket);
  }
}

void Worker::carry_out() {
  std::deque<Item> ahead;  // work that was queued on the device and is not known to be done
  const auto settle = [&](std::size_t left) {
    while (ahead.size() > left) {
      const Item oldest = std::move(ahead.front());
      ahead.pop_front();
      carry_out(oldest.ticket, [&](Executor& executor) {
        executor.device().wait(oldest.queued);
        if (oldest.finish) oldest.finish(executor);
      });
      progress_.advance(gpu_, oldest.ticket);
    }
  };
  const auto oldest_is_done = [&] {
    bool is_done = true;  // stays true if there was a failure, so that settle() handles it
    carry_out(ahead.front().ticket,
              [&](Executor& executor) { is_done = executor.device().poll(ahead.front().queued); });
    return is_done;
  };
  auto idle_since = std::chrono::steady_clock::now();
  while (true) {
    // New work is queued at once. Without any, the device is polled, at intervals that grow as in Device::wait().
    std::optional<std::chrono::nanoseconds> at_most;
    if (!ahead.empty()) {
      const auto passed = std::chrono::steady_clock::now() - idle_since;
      at_most = std::min<std::chrono::nanoseconds>(passed / 30, std::chrono::milliseconds(1));
    }
    if (std::optional<Item> item = next(at_most)) {
      settle(most_ahead - 1);
      carry_out(item->ticket, [&](Executor& executor) {
        item->work(executor);
        item->queued = executor.device().record_event(Stream::compute);
      });
      ahead.push_back(*std::move(item));
    } else if (ahead.empty()) {
      return;
    } else if (oldest_is_done()) {
      settle(ahead.size() - 1);
    } else {
      continue;
    }
    idle_since = std::chrono::steady_clock::now();
  }
}

}  // namespace pmaptrain::gpu
