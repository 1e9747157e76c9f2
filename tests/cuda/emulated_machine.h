// What the emulated devices of a platform share, and in which order the threads of the host have to call them.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda/emulated.h"
#include "tests/cuda/emulated_memory.h"
#include "tests/cuda/happens_before.h"
#include "tests/cuda/rendezvous.h"

namespace pmaptrain::emulation {

// The lanes of a device are sequences of calls: its streams, and what a graph that is replayed has beside the stream
// compute. Behind those of all devices there is one for the thread of each.
inline constexpr std::size_t lanes = 2 * gpu::streams - 1;

// On CUDA some calls of one device may wait for what others run: where memory is allocated, kernels are loaded, or
// graphs are made. A collective ends only when the threads of all its ranks have begun it. So either kind of call has
// to be ordered, on the host, before or after each one of the other kind by another device: by a meeting, or because
// the host has waited for the collective.
class HostOrder {
 public:
  explicit HostOrder(int devices) : first_lane_(lanes * static_cast<std::size_t>(devices)) {}

  // Calls of device `number`, whose thread knows what `known` has. Throw Error (failed) where there is no order.
  void may_wait_for_others(int number, Clock& known, const std::string& what);
  void begins_collective(int number, Clock& known, const std::string& what);
  void opened(int number) { ended_.erase(number); }
  // Returns what is wrong, where that is a collective that `host` has not waited for.
  std::string ends(int number, const Clock& host);
  void closed(int number);

 private:
  // The last call of a kind of each device: its number in the lane of the thread.
  struct HostCall {
    std::uint64_t number = 0;
    std::string what;
  };
  using HostCalls = std::map<int, HostCall>;
  void call(int number, Clock& known, const std::string& what, HostCalls& same, const HostCalls& others) const;

  std::size_t first_lane_;
  HostCalls waiting_, beginning_;
  std::set<int> ended_;
};

struct Machine {
  explicit Machine(const test::Emulation& emulation)
      : options(emulation),
        memory(emulation.memory),
        open(static_cast<std::size_t>(emulation.devices)),
        has_ended_collectives(open),
        host_order(emulation.devices),
        rendezvous(emulation.devices, emulation.patience) {}
  // Fails the test case where `misuse` is not empty.
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const test::Emulation options;
  std::mutex mutex;  // of all but the rendezvous
  Memory memory;
  std::vector<bool> open;                   // by device
  std::vector<bool> has_ended_collectives;  // so, too: aborted on its own thread
  Clock host;                               // what any thread of the host has waited for
  HostOrder host_order;
  std::string misuse;  // what was found where nothing can be thrown
  Rendezvous rendezvous;
};

}  // namespace pmaptrain::emulation
