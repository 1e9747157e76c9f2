// A thread that looks, from time to time, whether other threads are held up.
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
  // One second, or less where gpu::patience() is short.
  Lookout();
  ~Lookout();
  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;

  // While it lives, `look` is called on the lookout's thread; not any more when it has ended.
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
  std::thread thread_;  // begun with the first post
};

}  // namespace pmaptrain::gpu
