#include "core/train/loss_watch.h"

#include "core/setup/plan.h"
#include "core/setup/values.h"

namespace pmaptrain::train {

std::vector<EpochLoss> epoch_losses(const setup::Setup& setup, Module& module, std::span<const std::int64_t> members) {
  if (!setup.spec().train.loss_spike) return std::vector<EpochLoss>(members.size());
  const step::StepRoles& roles = setup.roles;
  const Handle sums[] = {
      module.input(setup::train_entry, roles.epoch_sums.front()),
      module.input(setup::train_entry, setup.model.weighted ? roles.epoch_sums.back() : roles.epoch_examples)};
  std::vector<EpochLoss> losses;
  for (const auto& numbers : setup::numbers_of(module, sums, members)) {
    losses.push_back({numbers.front().front(), numbers.back().front()});
  }
  return losses;
}

LossWatch::LossWatch(const setup::Setup& setup) : setup_(setup) {
  const auto& spike = setup.spec().train.loss_spike;
  if (spike) spike_.emplace(spike->factor, setup.timetable.spike_window);
}

void LossWatch::restore(const run::MemberState& state, std::int64_t step, const EpochLoss& now) {
  if (!spike_) return;
  if (!state.loss_sums) {  // nothing was watched before
    last_logged_step_ = step;
    sums_at_log_ = now;
    return;
  }
  const run::LossSums& sums = *state.loss_sums;
  spike_.emplace(setup_.spec().train.loss_spike->factor, setup_.timetable.spike_window, sums.means);
  last_logged_step_ = sums.line;
  sums_at_log_ = {sums.loss_at_line, sums.examples_at_line};
  ended_epochs_ = {sums.loss_ended, sums.examples_ended};
}

void LossWatch::save(run::MemberState& state) const {
  state.loss_sums.reset();
  if (!spike_) return;
  state.loss_sums = run::LossSums{spike_->means(),       last_logged_step_,  sums_at_log_.loss,
                                  sums_at_log_.examples, ended_epochs_.loss, ended_epochs_.examples};
}

std::optional<std::string> LossWatch::logged(std::int64_t step, const EpochLoss& now) {
  if (!spike_) return std::nullopt;
  const double examples = ended_epochs_.examples + now.examples - sums_at_log_.examples;
  const double loss = ended_epochs_.loss + now.loss - sums_at_log_.loss;
  const run::LossMean mean{last_logged_step_, step, loss / examples};
  last_logged_step_ = step;
  sums_at_log_ = now;
  ended_epochs_ = {};
  if (!(examples > 0)) return std::nullopt;  // every step since then was skipped
  return spike_->observe(mean);
}

void LossWatch::epoch_ends(const EpochLoss& now) {
  if (!spike_) return;
  ended_epochs_.loss += now.loss - sums_at_log_.loss;
  ended_epochs_.examples += now.examples - sums_at_log_.examples;
  sums_at_log_ = {};
}

}  // namespace pmaptrain::train
