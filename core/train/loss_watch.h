// The mean loss between two log lines, and whether it is a spike (train.loss_spike).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/run/loss_spike.h"
#include "core/run/run_state.h"
#include "core/runtime/backend.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

// The module's sums of the current epoch.
struct EpochLoss {
  double loss = 0, examples = 0;
};

// Of each of `members`, read by all processes together. Not read, and 0, if no spike is watched.
std::vector<EpochLoss> epoch_losses(const setup::Setup& setup, Module& module, std::span<const std::int64_t> members);

// Watches one member.
class LossWatch {
 public:
  // Setup outlives this.
  explicit LossWatch(const setup::Setup& setup);

  // `step` is the run's step, and `now` are the sums that the run continues from.
  void restore(const run::MemberState& state, std::int64_t step, const EpochLoss& now);
  void save(run::MemberState& state) const;

  // Called at each line of the log interval. Returns a warning about a spike.
  std::optional<std::string> logged(std::int64_t step, const EpochLoss& now);
  // Called before the module's sums of an epoch are reset.
  void epoch_ends(const EpochLoss& now);

 private:
  const setup::Setup& setup_;
  std::optional<run::LossSpike> spike_;
  std::int64_t last_logged_step_ = 0;
  EpochLoss sums_at_log_;   // of the current epoch at last_logged_step_
  EpochLoss ended_epochs_;  // of the epochs that have ended since that step
};

}  // namespace pmaptrain::train
