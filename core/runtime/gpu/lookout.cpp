#include "core/runtime/gpu/lookout.h"

#include <algorithm>

#include "core/runtime/gpu/environment.h"

namespace pmaptrain::gpu {

Lookout::Lookout() : every_(std::min<std::chrono::duration<double>>(std::chrono::seconds(1), patience() / 10)) {}

Lookout::~Lookout() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    ends_changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

Lookout::Post Lookout::add(std::function<void()> look) {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  return {*this, all_.insert(all_.end(), std::move(look))};
}

Lookout::Post::~Post() {
  if (lookout_ == nullptr) return;
  const std::lock_guard lock(lookout_->mutex_);
  lookout_->all_.erase(place_);
}

void Lookout::run() {
  std::unique_lock lock(mutex_);
  while (!ends_changed_.wait_for(lock, every_, [&] { return ends_; })) {
    for (const auto& look : all_) look();
  }
}

}  // namespace pmaptrain::gpu
