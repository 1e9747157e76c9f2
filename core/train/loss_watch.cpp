#include "core/train/loss_watch.h"

#include "core/setup/start.h"
#include "core/setup/values.h"

namespace pmaptrain::train {

LossWatch::LossWatch(const Setup& setup, Module& module, std::int64_t member)
    : setup_(setup), module_(module), member_(member) {
  const auto& spike = setup.spec().train.loss_spike;
  if (spike) spike_.emplace(spike->factor, setup.timetable.spike_window);
}

void LossWatch::restore(const MemberState& state, std::int64_t step) {
  if (!spike_) return;
  if (!state.loss_sums) {  // nothing was watched before
    last_logged_step_ = step;
    sums_at_log_ = of_epoch();
    return;
  }
  const LossSums& sums = *state.loss_sums;
  spike_.emplace(setup_.spec().train.loss_spike->factor, setup_.timetable.spike_window, sums.means);
  last_logged_step_ = sums.line;
  sums_at_log_ = {sums.loss_at_line, sums.examples_at_line};
  ended_epochs_ = {sums.loss_ended, sums.examples_ended};
}

void LossWatch::save(MemberState& state) const {
  state.loss_sums.reset();
  if (!spike_) return;
  state.loss_sums = LossSums{spike_->means(),       last_logged_step_,  sums_at_log_.loss,
                             sums_at_log_.examples, ended_epochs_.loss, ended_epochs_.examples};
}

LossWatch::Sums LossWatch::of_epoch() const {
  const auto number = [&](std::size_t input) {
    return scalar(module_, module_.input(train_entry, input), {module_.own_device(), member_});
  };
  const StepRoles& roles = setup_.roles;
  return {number(roles.epoch_sums.front()),
          number(setup_.model.weighted ? roles.epoch_sums.back() : roles.epoch_examples)};
}

std::optional<std::string> LossWatch::logged(std::int64_t step) {
  if (!spike_) return std::nullopt;
  const Sums now = of_epoch();
  const double examples = ended_epochs_.examples + now.examples - sums_at_log_.examples;
  const double loss = ended_epochs_.loss + now.loss - sums_at_log_.loss;
  const LossMean mean{last_logged_step_, step, loss / examples};
  last_logged_step_ = step;
  sums_at_log_ = now;
  ended_epochs_ = {};
  if (!(examples > 0)) return std::nullopt;  // every step since then was skipped
  return spike_->observe(mean);
}

void LossWatch::epoch_ends() {
  if (!spike_) return;
  const Sums now = of_epoch();
  ended_epochs_.loss += now.loss - sums_at_log_.loss;
  ended_epochs_.examples += now.examples - sums_at_log_.examples;
  sums_at_log_ = {};
}

}  // namespace pmaptrain::train
