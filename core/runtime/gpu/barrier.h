// What the threads of several devices share: a reason to stop, a barrier, and other objects.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace pmaptrain::gpu {

// A reason to stop that one thread gives and others look for. Any thread may set it. The first reason is kept.
class Abort {
 public:
  void set(const std::string& reason) noexcept {
    const std::lock_guard lock(mutex_);
    if (!reason_) reason_ = reason;
  }
  std::optional<std::string> reason() const {
    const std::lock_guard lock(mutex_);
    return reason_;
  }
  bool is_set() const { return reason().has_value(); }
  // Throws Error (failed) with the reason if set() has been called.
  void check() const {
    if (const std::optional<std::string> why = reason()) fail_running(*why);
  }

 private:
  mutable std::mutex mutex_;
  std::optional<std::string> reason_;
};

// The ranks as text, for example "{0, 1, 2}".
std::string ranks_text(std::span<const int> ranks);

class Barrier {
 public:
  explicit Barrier(std::vector<int> ranks) : ranks_(std::move(ranks)), here_(ranks_.size(), false) {}

  const std::vector<int>& ranks() const { return ranks_; }

  // Returns when all devices have called this as often as this one. `position` is the index of this device in ranks().
  // First calls before_waiting() with the barrier's lock held, so that the other devices see what it wrote when their
  // calls return. Throws Error (failed) if `abort` is set, or if a device does not call within gpu_timeout(): "rank 2
  // did not come to <what> within 600 s".
  template <class F>
  void arrive_and_wait(std::size_t position, const Abort& abort, const std::string& what, F&& before_waiting) {
    std::unique_lock lock(mutex_);
    before_waiting();
    wait_for_all(lock, position, abort, what);
  }

 private:
  void wait_for_all(std::unique_lock<std::mutex>& lock, std::size_t position, const Abort& abort,
                    const std::string& what);

  std::vector<int> ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> here_;   // by position: whether the device has arrived in this round, even if its wait has failed
  std::size_t arrived_ = 0;  // number of devices that wait in this round
  std::size_t round_ = 0;    // number of completed rounds
};

// Objects that devices of one module share. The first device that asks for the object of a module and ranks creates
// it with `make`; the others get the same object. It is destroyed with its last owner.
template <class T>
class SharedMap {
 public:
  template <class Make>
  std::shared_ptr<T> get(int module, std::span<const int> ranks, Make&& make) {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [](const auto& each) { return each.second.expired(); });
    std::weak_ptr<T>& known = all_[{module, {ranks.begin(), ranks.end()}}];
    std::shared_ptr<T> found = known.lock();
    if (found == nullptr) known = found = make();
    return found;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<int, std::vector<int>>, std::weak_ptr<T>> all_;
};

}  // namespace pmaptrain::gpu
