// A platform whose devices count the calls that take time once, of memory, kernels, graphs and communicators, and list
// those that queue work.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/backend.h"
#include "core/runtime/gpu/device.h"
#include "tests/emulated_gpu/platform.h"

namespace pmaptrain::test {

// What threads add, until it is taken.
template <class T>
class Log {
 public:
  void add(T entry) {
    const std::lock_guard lock(mutex_);
    entries_.push_back(std::move(entry));
  }
  std::vector<T> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(entries_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<T> entries_;
};

// Of all devices together.
struct CallCounts {
  // Planted: these calls, as `queued` has them, are not made; or "meet before recording", "meet after recording".
  std::string forgotten;
  std::atomic<int> memory = 0, kernels = 0, graphs = 0, communicators = 0;
  std::atomic<int> tf32 = 0;            // kernels that may round to it
  std::atomic<std::size_t> pinned = 0;  // bytes
  std::atomic<int> barriers = 0;
  std::atomic<int> most_in_flight = 0;  // calls of a device's graphs that it was not known to be done with
  std::atomic<int> graphs_that_work = -1, kernels_that_work = -1;  // planted: after so many, one fails

  // What a test does before a device's replay, and before it joins a communicator.
  std::function<void(int device)> before_replay, before_communicator;

  Log<int> closed;  // devices, in the order in which they were closed
  int all() const { return memory + kernels + graphs + communicators; }

  // The names of ranges for profilers. Each must end.
  std::atomic<int> open_ranges = 0;
  Log<std::string> ranges;
  std::vector<std::string> take_ranges() { return ranges.take(); }

  // "replay", "copy on copy", "order compute before copy", "follow on copy", in the order of the calls.
  Log<std::string> queued;
};

// `counts` outlives the platform and its devices.
std::unique_ptr<gpu::Platform> make_counted(std::unique_ptr<gpu::Platform> platform, CallCounts& counts);

// Emulated GPUs whose calls are counted, and modules on all of them, which compute equations by their reference.
struct CountedGpus : CallCounts {
  explicit CountedGpus(const Emulation& options = {}) : CountedGpus(make_emulated(options)) {}
  std::unique_ptr<Module> load(const Source& source) const;
  std::unique_ptr<Module> load(std::shared_ptr<const Program> program, int batches = 1) const;

  const gpu::Platform& emulated;
  const std::unique_ptr<gpu::Platform> platform;

 private:
  explicit CountedGpus(std::unique_ptr<gpu::Platform> made)
      : emulated(*made), platform(make_counted(std::move(made), *this)) {}
};

}  // namespace pmaptrain::test
