// A watchdog thread that periodically checks whether other threads are blocked.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

namespace pmaptrain::gpu {

class Lookout {
 public:
  // Checks every second, or more often if gpu::patience() is short.
  Lookout();
  ~Lookout();
  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;

  // A registration of `look`, which is called on the watchdog's thread until the Post is destroyed.
  class Post {
   public:
    Post() = default;
    ~Post();
    Post(Post&& other) noexcept : lookout_(std::exchange(other.lookout_, nullptr)), place_(other.place_) {}
    Post& operator=(Post&&) = delete;

   private:
    friend class Lookout;
    Post(Lookout& lookout, std::list<std::function<void()>>::iterator place) : lookout_(&lookout), place_(place) {}
    Lookout* lookout_ = nullptr;
    std::list<std::function<void()>>::iterator place_{};
  };
  Post add(std::function<void()> look);

 private:
  void run();

  const std::chrono::duration<double> every_;
  std::mutex mutex_;
  std::condition_variable ends_changed_;
  bool ends_ = false;
  std::list<std::function<void()>> all_;
  std::thread thread_;  // started by the first add()
};

}  // namespace pmaptrain::gpu
