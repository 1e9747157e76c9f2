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

std::string message_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error.diagnostics().front().message;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "unknown";
  }
}

void Progress::advance(int worker, std::int64_t ticket) {
  const std::lock_guard lock(mutex_);
  done_[static_cast<std::size_t>(worker)] = ticket;
  changed_.notify_all();
}

bool Progress::fail(std::int64_t ticket, std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  if (failure_) return false;
  failure_ = std::move(failure);
  failed_ = ticket;
  failed_at_ = std::chrono::steady_clock::now();
  changed_.notify_all();
  return true;
}

void Progress::skip(std::int64_t ticket) {
  const std::lock_guard lock(mutex_);
  failed_ = std::min(failed_, ticket);
}

bool Progress::has_failed() const {
  const std::lock_guard lock(mutex_);
  return failure_ != nullptr;
}

void Progress::pass_gate() {
  std::unique_lock lock(mutex_);
  ++at_gate_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return is_gate_open_ || failure_; });
  if (!is_gate_open_) fail_running("another GPU has failed");
}

void Progress::wait_at_gate() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return at_gate_ == done_.size() || failure_; });
  if (failure_) std::rethrow_exception(failure_);
}

void Progress::open_gate() {
  const std::lock_guard lock(mutex_);
  is_gate_open_ = true;
  changed_.notify_all();
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

std::chrono::milliseconds Progress::left_to_stop() const {
  const std::lock_guard lock(mutex_);
  const auto left = failed_at_ + time_to_stop() - std::chrono::steady_clock::now();
  return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(left), std::chrono::milliseconds(0));
}

std::chrono::milliseconds time_to_stop() {
  const std::chrono::duration<double> most = std::chrono::seconds(5);
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::min(most, gpu_timeout()));
}

Worker::Worker(Platform& platform, int gpu, int module, const RanksHere& ranks, Progress& progress,
               std::function<std::unique_ptr<Executor>(Device&)> make, std::function<void(const std::string&)> failed)
    : gpu_(gpu), progress_(progress), failed_(std::move(failed)) {
  thread_ =
      std::thread([this, &platform, module, ranks, make = std::move(make)] { run(platform, module, ranks, make); });
}

Worker::~Worker() {
  end();
  close();
}

void Worker::end() {
  const std::lock_guard lock(mutex_);
  ends_ = true;
  changed_.notify_all();
}

bool Worker::wait_for_end(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, at_most, [&] { return has_ended_; });
}

void Worker::close() {
  {
    const std::lock_guard lock(mutex_);
    closes_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Worker::add(std::int64_t ticket, std::function<void(Executor&)> work, std::function<void(Executor&)> finish) {
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

void Worker::run(Platform& platform, int module, const RanksHere& ranks,
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
    if (progress_.fail(0, std::current_exception())) failed_(message_of(std::current_exception()));
  }
  progress_.advance(gpu_, 0);
  if (executor_) carry_out();
  executor_.reset();
  std::unique_ptr<Device> device;  // destroyed on the thread that owns it
  std::unique_lock lock(mutex_);
  has_ended_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return closes_; });
  device = std::move(device_);
}

std::optional<Worker::Item> Worker::next(bool wait) {
  std::unique_lock lock(mutex_);
  if (wait) changed_.wait(lock, [&] { return ends_ || !queue_.empty(); });
  if (queue_.empty()) return std::nullopt;
  Item item = std::move(queue_.front());
  queue_.pop_front();
  return item;
}

void Worker::wait_for_work(std::chrono::nanoseconds at_most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, at_most, [&] { return ends_ || !queue_.empty(); });
}

void Worker::carry_out(std::int64_t ticket, const std::function<void(Executor&)>& work) {
  if (progress_.has_failed()) return progress_.skip(ticket);
  try {
    work(*executor_);
  } catch (...) {
    if (progress_.fail(ticket, std::current_exception())) {
      failed_(message_of(std::current_exception()));
    } else {
      progress_.skip(ticket);
    }
  }
}

void Worker::carry_out() {
  // Work that was queued on the device and is not yet done.
  struct Ahead {
    std::int64_t ticket;
    Event event;
    std::function<void(Executor&)> finish;
  };
  std::deque<Ahead> ahead;
  const auto settle = [&](std::size_t left) {
    while (ahead.size() > left) {
      const Ahead oldest = std::move(ahead.front());
      ahead.pop_front();
      carry_out(oldest.ticket, [&](Executor& executor) {
        executor.device().wait(oldest.event);
        if (oldest.finish) oldest.finish(executor);
      });
      progress_.advance(gpu_, oldest.ticket);
    }
  };
  const auto oldest_is_done = [&] {
    bool is_done = true;  // stays true if there was a failure, so that settle() handles it
    carry_out(ahead.front().ticket, [&](Executor& executor) { is_done = executor.device().poll(ahead.front().event); });
    return is_done;
  };
  auto idle_since = std::chrono::steady_clock::now();
  while (true) {
    std::optional<Item> item = next(false);
    if (!item && !ahead.empty()) {
      // Waits for the device or for new work, which is queued at once. Polling intervals grow as in Device::wait().
      if (oldest_is_done()) {
        settle(ahead.size() - 1);
        idle_since = std::chrono::steady_clock::now();
      } else {
        const auto passed = std::chrono::steady_clock::now() - idle_since;
        wait_for_work(std::min<std::chrono::nanoseconds>(passed / 30, std::chrono::milliseconds(1)));
      }
      continue;
    }
    if (!item) item = next(true);
    if (!item) return;
    settle(most_ahead - 1);
    carry_out(item->ticket, item->work);
    idle_since = std::chrono::steady_clock::now();
    Event event;
    carry_out(item->ticket, [&](Executor& executor) { event = executor.device().record_event(Stream::compute); });
    ahead.push_back({item->ticket, event, std::move(item->finish)});
  }
}

}  // namespace pmaptrain::gpu
