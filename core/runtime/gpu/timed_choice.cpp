#include "core/runtime/gpu/timed_choice.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "core/base/error.h"

namespace pmaptrain::gpu {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

double median(std::vector<double> times) {
  const auto middle = times.begin() + std::ssize(times) / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// The median time of each of `count` kernels; `never` if it does not run.
std::vector<double> times_of(std::size_t count, const std::function<double(std::size_t)>& seconds_of) {
  std::vector<std::vector<double>> all(count);
  std::vector<bool> runs(count, true);
  for (int run = 0; run < TimedChoices::runs; ++run) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!runs[i]) continue;
      try {
        const double seconds = seconds_of(i);
        if (run > 0) all[i].push_back(seconds);
      } catch (const Error&) {
        runs[i] = false;
      }
    }
  }
  std::vector<double> times;
  for (std::size_t i = 0; i < count; ++i) times.push_back(runs[i] ? median(std::move(all[i])) : never);
  return times;
}

}  // namespace

std::size_t TimedChoices::fastest(const std::string& purpose, std::span<const std::string> names,
                                  const std::function<double(std::size_t index)>& seconds_of) {
  if (names.size() == 1) return 0;
  std::string key = key_of_texts(purpose);
  for (const std::string& name : names) key += key_of_texts(name);
  const std::lock_guard lock(mutex_);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  if (const std::optional<std::string> kept = cache_.find(key)) {
    const auto found = std::find(names.begin(), names.end(), *kept);
    if (found != names.end()) return known_[key] = static_cast<std::size_t>(found - names.begin());
  }
  const std::vector<double> times = times_of(names.size(), seconds_of);
  const auto best = static_cast<std::size_t>(std::min_element(times.begin(), times.end()) - times.begin());
  known_[key] = best;
  // A kernel that did not run may do so next time, for example with more free memory.
  if (std::find(times.begin(), times.end(), never) == times.end()) cache_.store(key, names[best]);
  return best;
}

}  // namespace pmaptrain::gpu
