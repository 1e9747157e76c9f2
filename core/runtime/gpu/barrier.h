// A place where the devices of a communicator, each on its own thread, wait for one another.
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

// Why a device must not go on: another thread has aborted it. Set once.
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

// "{0, 1, 2}"
std::string ranks_text(std::span<const int> ranks);

class Barrier {
 public:
  explicit Barrier(std::vector<int> ranks) : ranks_(std::move(ranks)), here_(ranks_.size(), false), gave_up_(here_) {}

  const std::vector<int>& ranks() const { return ranks_; }

  // Returns when all devices have come as often as this one. `leave_word` is called before, under the lock that all
  // share, so that what it writes is seen by the others afterwards. Throws Error (failed) when a device does not come
  // ("rank 2 did not come to <what>"), or when `abort` is set.
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

// Things that the devices of a module share, each made by the first of them that comes, and gone with the last one.
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
