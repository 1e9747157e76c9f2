#include "tests/cuda/emulated_machine.h"

#include "core/base/error.h"
#include "tests/catch.h"

namespace pmaptrain::emulation {

void HostOrder::may_wait_for_others(int number, Clock& known, const std::string& what) {
  call(number, known, what, waiting_, beginning_);
}

void HostOrder::begins_collective(int number, Clock& known, const std::string& what) {
  for (const int ended : ended_) {
    fail_running("device " + std::to_string(ended) + " has ended before " + what + ": its end may wait for that",
                 "all devices have done their work before the first one ends");
  }
  call(number, known, what, beginning_, waiting_);
}

std::string HostOrder::ends(int number, const Clock& host) {
  ended_.insert(number);
  for (const auto& [device, begun] : beginning_) {
    if (host.at(first_lane_ + static_cast<std::size_t>(device)) >= begun.number) continue;
    return "device " + std::to_string(number) + " ends while " + begun.what + " may run";
  }
  return {};
}

void HostOrder::closed(int number) {
  waiting_.erase(number);
  beginning_.erase(number);
}

void HostOrder::call(int number, Clock& known, const std::string& what, HostCalls& same,
                     const HostCalls& others) const {
  for (const auto& [device, earlier] : others) {
    if (device == number || known.at(first_lane_ + static_cast<std::size_t>(device)) >= earlier.number) continue;
    fail_running("no order on the host between " + earlier.what + " and " + what + ": each may wait for the other",
                 "Device::meet() before memory is allocated or a graph is captured, and after it");
  }
  const std::size_t lane = first_lane_ + static_cast<std::size_t>(number);
  known.tick(lane);
  same[number] = {known.at(lane), what};
}

Machine::~Machine() {
  if (!misuse.empty()) FAIL_CHECK(misuse);
}

}  // namespace pmaptrain::emulation
