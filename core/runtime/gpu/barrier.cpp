#include "core/runtime/gpu/barrier.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "core/runtime/gpu/environment.h"

namespace pmaptrain::gpu {

std::string ranks_text(std::span<const int> ranks) { return fmt::format("{{{}}}", fmt::join(ranks, ", ")); }

void Barrier::wait_for_all(std::unique_lock<std::mutex>& lock, std::size_t position, const Abort& abort,
                           const std::string& what) {
  here_[position] = true;
  if (++arrived_ == ranks_.size()) {
    arrived_ = 0;
    here_.assign(ranks_.size(), false);
    ++round_;
    changed_.notify_all();
    return;
  }
  const std::size_t mine = round_;
  const auto end = std::chrono::steady_clock::now() + gpu_timeout();
  while (round_ == mine) {
    if (abort.is_set()) {
      --arrived_;
      abort.check();
    }
    if (std::chrono::steady_clock::now() > end) {
      --arrived_;
      const std::ptrdiff_t absent = std::find(here_.begin(), here_.end() - 1, false) - here_.begin();
      fail_running(fmt::format("GPU: rank {} did not come to {} within {} s", ranks_[static_cast<std::size_t>(absent)],
                               what, gpu_timeout().count()));
    }
    // Setting `abort` does not notify `changed_`, so it is checked at this interval.
    changed_.wait_for(lock, std::chrono::milliseconds(50));
  }
}

}  // namespace pmaptrain::gpu
