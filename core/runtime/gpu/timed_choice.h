// Chooses the fastest of several kernels that compute the same, by their times.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>

#include "core/runtime/gpu/disk_cache.h"

namespace pmaptrain::gpu {

// Keeps choices in memory and on disk, so that the devices of a process, and its next start on the same machine, choose
// the same without taking times. All functions are thread-safe.
class TimedChoices {
 public:
  // The index of the kernel that takes the least time; of several such the first. `purpose` is what they compute and on
  // what: choices are kept for equal purposes and names. `seconds_of(i)` runs kernel `i` once and returns its time. It
  // is called several times for each kernel, in turn, so that what slows a GPU down for a while slows all of them, and
  // for one device at a time, because virtual GPUs would slow each other down. A kernel for which it throws an Error is
  // not chosen; if that holds for all, the first is. `names` has at least one kernel; if it has no more, none is run.
  std::size_t fastest(const std::string& purpose, std::span<const std::string> names,
                      const std::function<double(std::size_t index)>& seconds_of);

  // How often each kernel is run: the first run warms it up, and the median of the others is its time.
  static constexpr int runs = 6;

 private:
  DiskCache cache_{"choice"};
  std::mutex mutex_;
  std::map<std::string, std::size_t> known_;  // by key
};

}  // namespace pmaptrain::gpu
