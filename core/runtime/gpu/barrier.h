// A barrier for the devices of a communicator, each on its own thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace pmaptrain::gpu {

// Tells a device to stop: another thread sets the reason, once.
class Abort {
 public:
  void set(const std::string& reason) noexcept;
  bool is_set() const;
  // Throws Error (failed) with the reason if it is set.
  void check() const;

 private:
  mutable std::mutex mutex_;
  std::optional<std::string> reason_;
};

// For example "{0, 1, 2}".
std::string ranks_text(std::span<const int> ranks);

class Barrier {
 public:
  explicit Barrier(std::vector<int> ranks) : ranks_(std::move(ranks)), here_(ranks_.size(), false), gave_up_(here_) {}

  const std::vector<int>& ranks() const { return ranks_; }

  // Returns when all devices have called this as often as this one. `leave_word` is called first, under the lock of the
  // barrier, so the others see what it wrote when they return. Throws Error (failed) if a device does not come ("rank 2
  // did not come to <what>"), or if `abort` is set.
  template <class F>
  void arrive_and_wait(std::size_t position, const Abort& abort, const std::string& what, F&& leave_word) {
    std::unique_lock lock(mutex_);
    leave_word();
    wait_for_all(lock, position, abort, what);
  }

 private:
  void wait_for_all(std::unique_lock<std::mutex>& lock, std::size_t position, const Abort& abort,
                    const std::string& what);

  std::vector<int> ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> here_, gave_up_;
  std::size_t arrived_ = 0;
  std::size_t round_ = 0;
};

// Objects that the devices of a module share. The first device that asks for an object creates it; it is destroyed with
// its last owner.
template <class T>
class SharedMap {
 public:
  template <class Make>
  std::shared_ptr<T> get(int module, int key, std::span<const int> ranks, Make&& make) {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [](const auto& each) { return each.second.expired(); });
    std::weak_ptr<T>& known = all_[{module, key, {ranks.begin(), ranks.end()}}];
    std::shared_ptr<T> found = known.lock();
    if (found == nullptr) known = found = make();
    return found;
  }

 private:
  std::mutex mutex_;
  std::map<std::tuple<int, int, std::vector<int>>, std::weak_ptr<T>> all_;
};

}  // namespace pmaptrain::gpu
