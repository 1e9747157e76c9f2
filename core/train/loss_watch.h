// The mean loss between two log lines, and whether it is a spike (train.loss_spike).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/run/loss_spike.h"
#include "core/run/run_state.h"
#include "core/runtime/backend.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

class LossWatch {
 public:
  // Watches one member. Setup and module outlive this; `module` is the module that trains.
  LossWatch(const Setup& setup, Module& module, std::int64_t member);

  // `step` is the run's step.
  void restore(const MemberState& state, std::int64_t step);
  void save(MemberState& state) const;

  // Called at each line of the log interval. Returns a warning about a spike.
  std::optional<std::string> logged(std::int64_t step);
  // Called before the module's sums of an epoch are reset.
  void epoch_ends();

 private:
  struct Sums {
    double loss = 0, examples = 0;
  };
  Sums of_epoch() const;

  const Setup& setup_;
  Module& module_;
  std::int64_t member_;
  std::optional<LossSpike> spike_;
  std::int64_t last_logged_step_ = 0;
  Sums sums_at_log_;   // sums of the current epoch at last_logged_step_
  Sums ended_epochs_;  // sums of the epochs that have ended since that step
};

}  // namespace pmaptrain::train
