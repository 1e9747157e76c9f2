#include "app/deliver.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "app/display/patience.h"
#include "app/signals.h"
#include "core/base/signals.h"

namespace pmaptrain::app {
namespace {

// Outlives a wait that was given up, with the thread that writes.
struct Delivery {
  std::string text;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
};

std::thread start(std::ostream& stream, const std::shared_ptr<Delivery>& delivery) {
  const BlockSignals blocked;
  return std::thread([&stream, delivery] {
    stream << delivery->text << std::flush;
    const std::lock_guard lock(delivery->mutex);
    delivery->done = true;
    delivery->changed.notify_all();
  });
}

}  // namespace

bool deliver(std::ostream& stream, const std::string& text) {
  const std::atomic<int>* const stop = stop_flag();
  const auto delivery = std::make_shared<Delivery>();
  delivery->text = text;
  std::thread thread;
  try {
    if (stop != nullptr) thread = start(stream, delivery);
  } catch (const std::system_error&) {
    // There was room for the display's thread a moment ago. Where there is none now, text without a bound on its time
    // is better than no text.
  }
  if (!thread.joinable()) {
    stream << text << std::flush;
    return true;
  }
  display::Patience patience(stop);
  std::unique_lock lock(delivery->mutex);
  while (!delivery->done && !patience.is_over()) delivery->changed.wait_for(lock, display::Patience::interval);
  const bool done = delivery->done;
  lock.unlock();
  done ? thread.join() : thread.detach();
  return done;
}

}  // namespace pmaptrain::app
