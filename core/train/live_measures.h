// Measures of batches for displays, independent of the log interval.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/clock.h"
#include "core/model/model.h"
#include "core/run/records/events.h"
#include "core/runtime/backend.h"
#include "core/step/step_program.h"

namespace pmaptrain::train {

// Reads the measures of a step at most every 0.1 seconds. No step waits for the result.
class LiveMeasures {
 public:
  // Reads nothing if no consumer wants live measures. `module` trains `model` by a program with these roles. Model and
  // module outlive this.
  LiveMeasures(const model::Model& model, const step::StepRoles& roles, Module& module,
               std::span<run::Consumer* const> consumers);

  // Waits for a read in progress.
  ~LiveMeasures();
  LiveMeasures(const LiveMeasures&) = delete;
  LiveMeasures& operator=(const LiveMeasures&) = delete;

  // Called after a step of these members was submitted, of this entry of the module. Reads its measures if it is time
  // to. Returns measures that have arrived since the last call, for several members the medians of those that this
  // process has; empty if none have arrived.
  run::Measures submitted(std::size_t entry, std::span<const std::int64_t> members);

 private:
  void read(std::size_t entry, std::span<const std::int64_t> members);
  run::Measures medians() const;

  const bool is_wanted_;
  const model::Model& model_;
  Module& module_;
  std::vector<std::size_t> roles_;  // outputs of a step: the means of the parts of measures
  std::vector<Handle> means_;       // the same, of the entry that is read
  std::vector<std::byte> bytes_;    // where the module writes the means of all members
  std::size_t member_bytes_ = 0;
  std::vector<std::int64_t> members_;  // the members of the read in progress
  std::optional<Ticket> pending_;
  Clock::time_point asked_;
};

}  // namespace pmaptrain::train
