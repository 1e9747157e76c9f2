// GPUs emulated on the host, behind the seam of core/runtime/gpu/device.h: every call is carried out at once, on host
// memory, and is checked for what a GPU would only sometimes show: accesses without an order, accesses that were not
// declared, memory of another device, ranks that do not meet.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/gpu/device.h"

namespace pmaptrain::test {

struct Emulation {
  int devices = 1;
  std::size_t memory = std::size_t{1} << 30;  // of each device
  unsigned seed = 0;   // of what the real thing leaves open: the order of a sum, when poll() says yes
  bool graphs = true;  // a graph is one launch; else a replay makes each call that was recorded
  std::chrono::milliseconds patience{10'000};  // how long a rank waits for the others
  // Planted: from its collective of this number on (counted over all communicators, from 0) a rank no longer comes.
  int lost_rank = -1;
  int lost_from = 0;
  int forgotten_barrier = -1;         // planted: no kernel's threads wait at their barrier of this number, from 0
  bool library_has_attention = true;  // else prepare() takes our own kernels
};

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

// What all devices of a platform were called for so far, and what a test plants in these calls.
struct DeviceCalls {
  std::atomic<int> memory = 0, kernels = 0, graphs = 0, communicators = 0;  // calls that take time once
  std::atomic<int> barriers = 0;
  std::atomic<int> tf32 = 0;                     // kernels that may round to it
  std::atomic<std::size_t> pinned = 0;           // bytes
  std::atomic<std::size_t> bytes_between = 0;    // that devices have sent to others, as gpu::bytes_sent() counts them
  std::atomic<std::size_t> bytes_from_host = 0;  // that were copied to devices
  std::atomic<int> most_in_flight = 0;           // calls of a device's graphs that its thread did not know to be done
  void are_in_flight(int calls) {
    int most = most_in_flight;
    while (calls > most && !most_in_flight.compare_exchange_weak(most, calls)) continue;
  }
  Log<int> closed;          // ranks, in the order in which their devices were closed
  Log<std::string> queued;  // in order: "replay", "copy on copy", "order compute before copy", "follow on copy"
  Log<std::string> ranges;  // names for profilers
  std::atomic<int> open_ranges = 0;

  // Planted: these calls, as `queued` has them, are not made; or "meet before recording", "meet after recording".
  std::string forgotten;
  std::atomic<int> graphs_that_work = -1, kernels_that_work = -1;  // planted: after so many, one fails
  std::atomic<int> late_rank = -1;  // planted: this one has been in a call of a library for too long
  // What a test does before the replay of a device with this rank, and before it joins a communicator.
  std::function<void(int rank)> before_replay, before_communicator;
};

// In place of make_gpu_kernel: every equation by its op's reference, as the emulation carries out generated code.
inline GpuKernel by_reference(const Op&, const GpuRequest&) { return {{GpuGenerated{}}, 0}; }

// Devices throw Error as device.h says. One that was opened may outlive its platform.
std::unique_ptr<gpu::Platform> make_emulated(const Emulation& options);

// The GPUs of several processes, as many as `options` says in each: platform p is that of process p. A device reaches
// those of other processes by communicators alone.
std::vector<std::unique_ptr<gpu::Platform>> make_emulated(int processes, const Emulation& options);

// What was found to be wrong so far where nothing can be thrown: memory that is freed while another device uses it.
// Empty where nothing is, and again afterwards; the end of the platform and its devices fails a test case otherwise.
std::string take_misuse(const gpu::Platform& emulated);

// Lives as long as the platform and its devices.
DeviceCalls& calls_of(const gpu::Platform& emulated);

}  // namespace pmaptrain::test
