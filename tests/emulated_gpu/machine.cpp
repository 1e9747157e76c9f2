#include "tests/emulated_gpu/machine.h"

#include <cstring>

#include "core/base/error.h"
#include "tests/catch.h"

namespace pmaptrain::emulation {

void HostOrder::may_wait_for_others(const Opened& device, Clock& known, const std::string& what) {
  call(device, known, what, waiting_, beginning_);
}

void HostOrder::begins_collective(const Opened& device, Clock& known, const std::string& what) {
  for (const int ended : ended_) {
    fail_running("device " + std::to_string(ended) + " has ended before " + what + ": its end may wait for that",
                 "all devices have done their work before the first one ends");
  }
  call(device, known, what, beginning_, waiting_);
}

void HostOrder::ends(int number) {
  ended_.insert(number);
  waiting_.erase(number);
  beginning_.erase(number);
}

std::string HostOrder::under_way(const Clock& host) const {
  for (const auto& [device, begun] : beginning_) {
    if (host.at(begun.lane) < begun.number) return begun.what;
  }
  return {};
}

void HostOrder::call(const Opened& device, Clock& known, const std::string& what, HostCalls& same,
                     const HostCalls& others) {
  for (const auto& [number, earlier] : others) {
    if (number == device.number || known.at(earlier.lane) >= earlier.number) continue;
    fail_running("no order on the host between " + earlier.what + " and " + what + ": each may wait for the other",
                 "Device::barrier() before memory is allocated or a graph is captured, and after it");
  }
  known.tick(device.host_lane());
  same[device.number] = {device.host_lane(), known.at(device.host_lane()), what};
}

Machine::~Machine() {
  if (!misuse.empty()) FAIL_CHECK(misuse);
}

gpu::CommunicatorId Links::new_id() {
  const std::lock_guard lock(mutex_);
  gpu::CommunicatorId id{};
  const std::size_t number = communicators_.size() + 1;
  std::memcpy(id.data(), &number, sizeof number);
  communicators_[id] = nullptr;
  return id;
}

std::shared_ptr<Rendezvous> Links::rendezvous_of(const gpu::CommunicatorId& id, int ranks,
                                                 std::chrono::milliseconds patience) {
  const std::lock_guard lock(mutex_);
  const auto found = communicators_.find(id);
  if (found == communicators_.end()) fail_running("no process has made this identity of a communicator");
  if (found->second == nullptr) found->second = std::make_shared<Rendezvous>(ranks, patience);
  return found->second;
}

Opened Machine::open(int module, int device, int first_rank) {
  const std::lock_guard lock(mutex);
  OfModule& mine = modules.try_emplace(module, options, first_rank).first->second;
  const int rank = first_rank + device;
  if (!mine.open.insert(rank).second) fail_running("device " + std::to_string(rank) + " is open already");
  mine.host_order.opened(rank);
  return {module, rank, links->next_opened()};
}

OfModule& Machine::of(int module) {
  const std::lock_guard lock(mutex);
  return modules.at(module);
}

std::string Machine::under_way_elsewhere(int module) const {
  for (const auto& [number, other] : modules) {
    if (number == module) continue;
    if (std::string begun = other.host_order.under_way(host); !begun.empty()) return begun + " of another module";
  }
  return {};
}

}  // namespace pmaptrain::emulation
