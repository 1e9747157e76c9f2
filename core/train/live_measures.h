// The measures of batches while training goes on, whatever the log interval is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/clock.h"
#include "core/run/records/events.h"
#include "core/runtime/backend.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

// Reads the measures of a step at most every tenth of a second, and never waits for it.
class LiveMeasures {
 public:
  // Reads nothing where no consumer wants it. Setup and module outlive this.
  LiveMeasures(const Setup& setup, Module& module, std::span<Consumer* const> consumers);

  // Waits for what is read.
  ~LiveMeasures();
  LiveMeasures(const LiveMeasures&) = delete;
  LiveMeasures& operator=(const LiveMeasures&) = delete;

  // After a step of these members was submitted: reads its measures if it is time to. Returns those that have arrived
  // since the last call, of several members the medians; empty where none have.
  Measures submitted(std::span<const std::int64_t> members);

 private:
  void read(std::span<const std::int64_t> members);
  Measures medians() const;

  const bool is_wanted_;
  const Setup& setup_;
  Module& module_;
  std::vector<Handle> means_;     // of the measures, outputs of the step
  std::vector<std::byte> bytes_;  // the means of all members, which the module writes
  std::size_t member_bytes_ = 0;
  std::vector<std::int64_t> members_;  // that are read
  std::optional<Ticket> pending_;
  Clock::time_point asked_;
};

}  // namespace pmaptrain::train
