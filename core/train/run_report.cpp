#include "core/train/run_report.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/base/version.h"
#include "core/train/start.h"
#include "core/train/values.h"

namespace pmaptrain::train {
RunReport::RunReport(const Setup& setup, Module& module) : setup_(setup), module_(module) {}

void RunReport::begin(std::span<Consumer* const> consumers, const RunFolder& folder, const std::string& run_dir,
                      std::int64_t steps, int workers, const RunState* resumed) {
  begin_ = logged_at_ = Clock::now();
  if (resumed != nullptr) {
    begin_ -= duration_of(resumed->seconds);
    epoch_began_ = resumed->seconds - resumed->epoch_seconds;
    logged_step_ = resumed->logged_step;
    logged_examples_ = examples_until(resumed->step);
    measures_ = resumed->measures;
    resumed_step_ = resumed->last_step;
    unreported_ = resumed->last_epoch;
  }
  consumers_.assign(consumers.begin(), consumers.end());
  const Warn warn = [this](const std::string& text) { recorder_warnings_.push_back(text); };
  records_.emplace(folder.place("metrics.jsonl"), folder.place("log.txt"), folder.place("summary.json"),
                   std::string(version), warn);
  consumers_.push_back(&*records_);
  emit(started(run_dir, steps, workers, resumed != nullptr ? resumed->step : 0));
  for (const std::string& note : setup_.loaded.notes) emit(Warned{note});
  for (const std::string& note : setup_.source.notes) emit(Warned{note});
  for (const std::string& warning : setup_.warnings) emit(Warned{warning});
  for (const std::string& warning : folder.warnings()) emit(Warned{warning});
  if (setup_.mesh().devices() < 2) {
    emit(Warned{"the mesh has one logical device: there is nothing to synchronise (mesh.axes, --devices)"});
  }
}

void RunReport::save(RunState& state, bool unlogged) const {
  state.seconds = seconds_since(begin_);
  state.epoch_seconds = state.seconds - epoch_began_;
  // The guard is asked after a line: that of a step which it takes back is no part of the state.
  const bool taken_back = logged_step_ > state.step;
  state.logged_step = taken_back ? before_line_.step : logged_step_;
  state.measures = measures_;
  state.metrics_bytes = taken_back ? before_line_.metrics_bytes : records_->metrics_bytes();
  state.last_step = !unlogged                                            ? std::nullopt
                    : resumed_step_ && resumed_step_->step == state.step ? resumed_step_
                                                                         : std::optional(logged(state.step));
  state.last_epoch = unreported_ && unreported_->step == state.step ? unreported_ : std::nullopt;
}

Started RunReport::started(const std::string& run_dir, std::int64_t steps, int workers, std::int64_t first_step) const {
  const std::int64_t steps_per_epoch = setup_.timetable.steps_per_epoch;
  Started event{setup_.spec().name, run_dir, first_step, steps, steps_per_epoch, {}};
  const data::BatchPlan& batch = setup_.batch;
  event.description.push_back(setup_.source.description);
  event.description.push_back(counted(setup_.model.parameter_count(), "parameter") + " on " +
                              counted(batch.devices, "logical device") + ", carried by " + counted(workers, "worker"));
  event.description.push_back(
      "batches of " + with_commas(batch.global) + ": " + counted(batch.rows_per_device, "row") + " a device" +
      (batch.microbatches > 1 ? " in " + std::to_string(batch.microbatches) + " microbatches" : "") + ", " +
      counted(steps_per_epoch, "step") + " an epoch");
  return event;
}

void RunReport::emit(const Event& event) {
  for (Consumer* consumer : consumers_) consumer->on(event);
  while (!recorder_warnings_.empty()) {
    const Event warning = Warned{recorder_warnings_.back()};
    recorder_warnings_.pop_back();
    for (Consumer* consumer : consumers_) consumer->on(warning);
  }
}

std::int64_t RunReport::epoch_of(std::int64_t step) const { return (step - 1) / setup_.timetable.steps_per_epoch + 1; }

std::int64_t RunReport::examples_until(std::int64_t step) const {
  const std::int64_t steps_per_epoch = setup_.timetable.steps_per_epoch;
  return step / steps_per_epoch * setup_.batch.examples_per_epoch + step % steps_per_epoch * setup_.batch.global;
}

double RunReport::output(std::size_t index) const { return scalar(module_, module_.output(train_entry, index)); }

void RunReport::log(std::int64_t step) { report(logged(step)); }

void RunReport::last_step(std::int64_t step) {
  if (step == 0 || logged_step_ == step) return;
  report(resumed_step_ && resumed_step_->step == step ? *resumed_step_ : logged(step));
}

Logged RunReport::logged(std::int64_t step) const {
  Logged event;
  event.step = step;
  event.epoch = epoch_of(step);
  std::vector<std::vector<double>> means;
  for (std::size_t mean : setup_.roles.means) means.push_back(numbers(module_, module_.output(train_entry, mean)));
  event.measures = model::finish_measures(setup_.model, means);
  event.learning_rate = output(setup_.roles.used_learning_rate);
  event.grad_norm = output(setup_.roles.grad_norm);
  event.seconds = seconds_since(begin_);
  const std::int64_t examples = examples_until(step);
  const double elapsed = seconds_since(logged_at_);
  event.examples_per_second = elapsed > 0 ? static_cast<double>(examples - logged_examples_) / elapsed : 0;
  return event;
}

void RunReport::report(const Logged& event) {
  logged_at_ = Clock::now();
  logged_examples_ = examples_until(event.step);
  before_line_ = {logged_step_, records_->metrics_bytes()};
  logged_step_ = event.step;
  measures_["train"] = event.measures;
  emit(event);
}

void RunReport::end_epoch(std::int64_t step, bool last) {
  const StepRoles& roles = setup_.roles;
  const bool reports = setup_.timetable.log_every <= setup_.timetable.steps_per_epoch || logged_step_ == step;
  if (reports) report(epoch(step));
  if (last && !reports) unreported_ = epoch(step);
  epoch_began_ = seconds_since(begin_);
  const auto clear = [&](std::size_t input) {
    const Handle value = module_.input(train_entry, input);
    const std::vector<std::byte> zeros(module_.slice_bytes(value));
    module_.wait(module_.write(value, every_device, zeros));
  };
  for (std::size_t sum : roles.epoch_sums) clear(sum);
  clear(roles.epoch_examples);
}

void RunReport::last_epoch(std::int64_t step) {
  if (step > 0 && reported_epoch_at_ != step)
    report(unreported_ && unreported_->step == step ? *unreported_ : epoch(step));
}

// Of no examples, where every step was skipped, there are no means.
EpochEnded RunReport::epoch(std::int64_t step) const {
  const double examples = scalar(module_, module_.input(train_entry, setup_.roles.epoch_examples));
  EpochEnded event;
  event.step = step;
  event.epoch = epoch_of(step);
  event.examples = static_cast<std::int64_t>(examples);
  event.seconds = seconds_since(begin_) - epoch_began_;
  std::vector<std::vector<double>> means;
  for (std::size_t sum : setup_.roles.epoch_sums) {
    means.push_back(numbers(module_, module_.input(train_entry, sum)));
    for (double& value : means.back()) value /= examples;
  }
  event.measures = model::finish_measures(setup_.model, means);
  return event;
}

void RunReport::report(const EpochEnded& epoch) {
  if (epoch.examples == 0) return;
  reported_epoch_at_ = epoch.step;
  measures_["train"] = epoch.measures;
  emit(epoch);
}

// Its time is no training time.
void RunReport::evaluated(std::int64_t step, const Evaluation& evaluation) {
  logged_at_ += duration_of(evaluation.seconds);
  measures_[evaluation.split] = evaluation.measures;
  emit(Evaluated{step, epoch_of(std::max<std::int64_t>(step, 1)), evaluation.split, evaluation.measures,
                 evaluation.examples, evaluation.seconds});
}

void RunReport::add_totals(Ended& ended, std::int64_t steps) const {
  ended.steps = steps;
  ended.epochs = steps / setup_.timetable.steps_per_epoch;
  ended.examples_seen = examples_until(steps);
  ended.examples_skipped = ended.epochs * setup_.batch.skipped_per_epoch;
  for (const char* const split : {"train", "validation", "test"}) {
    const auto found = measures_.find(split);
    if (found != measures_.end()) ended.final_measures.emplace_back(split, found->second);
  }
  ended.seconds = seconds_since(begin_);
}

}  // namespace pmaptrain::train
