#include "core/data/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/machine.h"
#include "core/base/signals.h"

namespace pmaptrain::data {
namespace {

struct Items {
  const std::int64_t count;
  const std::function<void(std::int64_t)>& work;
  std::atomic<std::int64_t> next = 0;
  std::atomic<std::int64_t> failed = std::numeric_limits<std::int64_t>::max();  // the smallest
  std::mutex mutex = {};
  std::exception_ptr error = {};

  // Items are taken in order, so those before a failed one have all been taken.
  void run() {
    for (std::int64_t i = next++; i < count && i < failed; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i > failed) continue;
        failed = i;
        error = std::current_exception();
      }
    }
  }
};

}  // namespace

void for_each_item(std::int64_t count, const std::function<void(std::int64_t)>& work) {
  Items items{count, work};
  {
    const auto wanted = std::min(count, static_cast<std::int64_t>(std::max(1.0, allowed_cores())));
    std::vector<std::jthread> threads;
    try {
      const BlockSignals blocked;  // in those threads; this one still takes them
      while (std::ssize(threads) + 1 < wanted) threads.emplace_back([&items] { items.run(); });
    } catch (const std::system_error&) {
      // The threads that were started do all the work.
    }
    items.run();
  }
  if (items.error) std::rethrow_exception(items.error);
}

}  // namespace pmaptrain::data
