// What the emulated devices of a platform share, which are those of a process, and in which order the threads of the
// host have to call them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "tests/emulated_gpu/happens_before.h"
#include "tests/emulated_gpu/memory.h"
#include "tests/emulated_gpu/platform.h"
#include "tests/emulated_gpu/rendezvous.h"

namespace pmaptrain::emulation {

// The lanes of a device are sequences of calls: its streams, and what a graph that is replayed has beside the stream
// compute. Behind them there is one for its thread.
inline constexpr std::size_t lanes = 2 * gpu::stream_count - 1;

// A device as a module has opened it, from then to its end. Its number is its rank.
struct Opened {
  int module = 0;
  int number = 0;
  std::size_t id = 0;  // of all that were opened

  std::size_t lane(std::size_t of_device) const { return id * (lanes + 1) + of_device; }
  std::size_t host_lane() const { return lane(lanes); }
};

// On CUDA some calls of one device may wait for what others run: where memory is allocated, kernels are loaded, or
// graphs are made. A collective ends only when the threads of all its ranks have begun it. So either kind of call has
// to be ordered, on the host, before or after each one of the other kind by another device: by a barrier, or because
// the host has waited for the collective.
class HostOrder {
 public:
  // Calls of a device whose thread knows what `known` has. Throw Error (failed) where there is no order.
  void may_wait_for_others(const Opened& device, Clock& known, const std::string& what);
  void begins_collective(const Opened& device, Clock& known, const std::string& what);
  void opened(int number) { ended_.erase(number); }
  void ends(int number);
  // A collective that `host` has not waited for; empty where there is none.
  std::string under_way(const Clock& host) const;

 private:
  // The last call of a kind of each device: its number in the lane of the thread.
  struct HostCall {
    std::size_t lane = 0;
    std::uint64_t number = 0;
    std::string what;
  };
  using HostCalls = std::map<int, HostCall>;
  static void call(const Opened& device, Clock& known, const std::string& what, HostCalls& same,
                   const HostCalls& others);

  HostCalls waiting_, beginning_;
  std::set<int> ended_;
};

// What the machines of several processes share.
class Links {
 public:
  std::size_t next_opened() { return opened_++; }
  gpu::CommunicatorId new_id();
  // Where the ranks of a communicator of several processes meet. Throws Error (failed) if no process has made the id.
  std::shared_ptr<Rendezvous> rendezvous_of(const gpu::CommunicatorId& id, int ranks,
                                            std::chrono::milliseconds patience);

 private:
  std::atomic<std::size_t> opened_ = 0;
  std::mutex mutex_;
  std::map<gpu::CommunicatorId, std::shared_ptr<Rendezvous>> communicators_;  // null before a rank has come
};

// What the devices of a module share.
struct OfModule {
  OfModule(const test::Emulation& emulation, int first)
      : first_rank(first), rendezvous(first + emulation.devices, emulation.patience) {}

  const int first_rank;
  std::set<int> open;  // devices
  HostOrder host_order;
  Rendezvous rendezvous;
};

struct Machine {
  Machine(const test::Emulation& emulation, std::shared_ptr<Links> shared)
      : options(emulation), links(std::move(shared)), memory(emulation.memory) {}
  // Fails the test case where `misuse` is not empty.
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Throws Error (failed) where the module has it already.
  Opened open(int module, int device, int first_rank);
  OfModule& of(int module);
  // A collective of another module that the host has not waited for.
  std::string under_way_elsewhere(int module) const;

  const test::Emulation options;
  const std::shared_ptr<Links> links;
  std::mutex mutex;  // of all but each rendezvous
  Memory memory;
  std::map<int, OfModule> modules;
  Clock host;               // what any thread of the host has waited for
  std::string misuse;       // what was found where nothing can be thrown
  test::DeviceCalls calls;  // without the mutex
};

}  // namespace pmaptrain::emulation
