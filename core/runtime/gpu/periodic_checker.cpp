#include "core/runtime/gpu/periodic_checker.h"

#include <algorithm>

#include "core/runtime/gpu/environment.h"

namespace pmaptrain::gpu {

PeriodicChecker::PeriodicChecker()
    : interval_(std::min<std::chrono::duration<double>>(std::chrono::seconds(1), gpu_timeout() / 10)) {}

PeriodicChecker::~PeriodicChecker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    ends_changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

PeriodicChecker::Registration PeriodicChecker::add(std::function<void()> check) {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  return {*this, checks_.insert(checks_.end(), std::move(check))};
}

PeriodicChecker::Registration::~Registration() {
  if (checker_ == nullptr) return;
  const std::lock_guard lock(checker_->mutex_);
  checker_->checks_.erase(place_);
}

void PeriodicChecker::run() {
  std::unique_lock lock(mutex_);
  while (!ends_changed_.wait_for(lock, interval_, [&] { return ends_; })) {
    for (const auto& check : checks_) check();
  }
}

}  // namespace pmaptrain::gpu
