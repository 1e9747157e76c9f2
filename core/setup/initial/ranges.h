// Ranges of a loop on several threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <future>
#include <vector>

#include "core/base/machine.h"
#include "core/base/signals.h"

namespace pmaptrain::setup {

// Calls f(begin, end) for ranges that cover 0 to `count`, each of at least `least` on its own thread.
template <class F>
void for_ranges(std::size_t count, std::size_t least, const F& f) {
  static const auto cores = static_cast<std::size_t>(allowed_cores());
  const std::size_t ranges = std::clamp<std::size_t>(count / least, 1, cores);
  std::vector<std::future<void>> others;
  const BlockSignals blocked;
  for (std::size_t i = 1; i < ranges; ++i) {
    // If no thread can be started, the function runs on this thread.
    others.push_back(std::async(std::launch::async | std::launch::deferred,
                                [&f, i, count, ranges] { f(i * count / ranges, (i + 1) * count / ranges); }));
  }
  f(0, count / ranges);
  for (std::future<void>& other : others) other.get();
}

}  // namespace pmaptrain::setup
