// A thread that calls functions periodically, for example to check whether another thread is blocked.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

namespace pmaptrain::gpu {

class PeriodicChecker {
 public:
  // Calls each function once in a second, or ten times in gpu_timeout() if that is more often.
  PeriodicChecker();
  ~PeriodicChecker();
  PeriodicChecker(const PeriodicChecker&) = delete;
  PeriodicChecker& operator=(const PeriodicChecker&) = delete;

  // The owner of a function that was added. The function is called until its Registration is destroyed.
  class Registration {
   public:
    Registration() = default;
    ~Registration();
    Registration(Registration&& other) noexcept
        : checker_(std::exchange(other.checker_, nullptr)), place_(other.place_) {}
    Registration& operator=(Registration&&) = delete;

   private:
    friend class PeriodicChecker;
    Registration(PeriodicChecker& checker, std::list<std::function<void()>>::iterator place)
        : checker_(&checker), place_(place) {}
    PeriodicChecker* checker_ = nullptr;
    std::list<std::function<void()>>::iterator place_{};
  };
  Registration add(std::function<void()> check);

 private:
  void run();

  const std::chrono::duration<double> interval_;
  std::mutex mutex_;
  std::condition_variable ends_changed_;
  bool ends_ = false;
  std::list<std::function<void()>> checks_;
  std::thread thread_;  // started by the first add()
};

}  // namespace pmaptrain::gpu
