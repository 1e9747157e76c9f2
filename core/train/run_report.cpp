#include "core/train/run_report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/text.h"
#include "core/base/version.h"
#include "core/evaluate/evaluator.h"
#include "core/run/records/tensorboard.h"
#include "core/setup/plan.h"
#include "core/setup/values.h"
#include "core/train/resume.h"

namespace pmaptrain::train {
namespace {

// In the order of the members.
template <class Event>
std::vector<Event> values_of(std::map<std::int64_t, Event> by_member) {
  std::vector<Event> events;
  events.reserve(by_member.size());
  for (auto& [member, event] : by_member) events.push_back(std::move(event));
  return events;
}

}  // namespace

RunReport::RunReport(const setup::Setup& setup, Module& module)
    : setup_(setup),
      module_(module),
      outputs_entry_(setup::train_entry),
      reported_(static_cast<std::size_t>(spec::members(setup.spec()))) {}

void RunReport::begin(std::span<run::Consumer* const> consumers, const run::RunFolder& folder,
                      const std::string& run_dir, std::int64_t steps, const std::string& workers,
                      std::span<const std::string> notes, const run::RunState* resumed) {
  begin_ = logged_at_ = Clock::now();
  if (resumed != nullptr) {
    begin_ -= duration_of(resumed->seconds);
    epoch_began_ = resumed->seconds - resumed->epoch_seconds;
    epoch_began_after_ = resumed->step;
    logged_examples_ = examples_until(resumed->step);
    first_step_ = resumed->step;
    for (std::size_t m = 0; m < reported_.size(); ++m) {
      const run::MemberState& state = resumed->members[m];
      const bool is_undone = state.last_step && state.last_step->step > state.steps &&
                             stays_finished(state, *resumed, setup_.spec().train);
      reported_[m] = {state.logged_step, 0,  state.last_step, is_undone,
                      state.last_epoch,  -1, state.measures,  state.confusions};
      for (const auto& [split, measures] : state.measures) reported_[m].evaluated_at[split] = state.evaluated_step;
      logged_step_ = std::max(logged_step_, state.logged_step);
      const run::MemberNumber number = setup_.member_number(static_cast<std::int64_t>(m));
      if (reported_[m].last_step) reported_[m].last_step->member = number;
      if (reported_[m].unreported) reported_[m].unreported->member = number;
    }
  }
  consumers_.assign(consumers.begin(), consumers.end());
  const run::Warn warn = [this](const std::string& text) { recorder_warnings_.push_back(text); };
  records_.emplace(folder.place("metrics.jsonl"), folder.place("log.txt"), folder.place("summary.json"),
                   std::string(version), warn);
  consumers_.push_back(&*records_);
  if (!folder.writes()) records_->be_silent();
  const std::int64_t first_step = resumed != nullptr ? resumed->step : 0;
  if (setup_.spec().train.tensorboard && folder.writes()) {
    records_->begin_tensorboard(folder.directory(), setup_.spec().ensemble ? spec::members(setup_.spec()) : 0,
                                first_step);
  }
  emit(started(run_dir, steps, workers, first_step));
  for (const std::string& warning : setup_.loaded.warnings) emit(run::Warned{warning});
  for (const std::string& note : notes) emit(run::Warned{note});
  for (const std::string& warning : setup_.warnings) emit(run::Warned{warning});
  for (const std::string& warning : folder.warnings()) emit(run::Warned{warning});
  if (resumed != nullptr) tell_changes(resumed->changes.size());
}

// Emits the run's changes after the first `reported` ones, which the checkpoint already has. They are on the disk
// before the first step to which they apply.
void RunReport::tell_changes(std::size_t reported) {
  const std::vector<run::Changed> changes = all_changes();
  for (std::size_t i = reported; i < changes.size(); ++i) emit(changes[i]);
  if (reported < changes.size()) records_->flush();
}

std::vector<run::Changed> RunReport::all_changes() const {
  std::vector<run::Changed> all;
  for (const spec::Change& change : setup_.loaded.changes) {
    all.push_back({change.step, epoch_of(change.step), change.key, change.before, change.value});
  }
  return all;
}

void RunReport::save(run::RunState& state, std::int64_t step) const {
  state.seconds = seconds_since(begin_);
  state.epoch_seconds = state.seconds - epoch_began_;
  // The line of a step that the guard has undone is not part of the state.
  const bool cuts_line = logged_step_ > state.step;
  state.metrics_bytes = cuts_line ? bytes_before_line_ : records_->metrics_bytes();
  std::vector<std::int64_t> with_line, with_epoch;
  for (std::size_t m = 0; m < reported_.size(); ++m) {
    if (state.members[m].left_behind) continue;
    if (!reported_[m].is_undone && state.step == step) with_line.push_back(static_cast<std::int64_t>(m));
    if (state.members[m].steps == step) with_epoch.push_back(static_cast<std::int64_t>(m));
  }
  Lines lines = last_lines(step, with_line);
  // The measures that report_last_lines() would report.
  Epochs epochs = last_epochs(step, with_epoch);
  for (std::size_t m = 0; m < reported_.size(); ++m) {
    const auto number = static_cast<std::int64_t>(m);
    const Reported& reported = reported_[m];
    run::MemberState& member = state.members[m];
    member.logged_step =
        cuts_line && reported.logged_step > member.steps ? reported.logged_before : reported.logged_step;
    member.measures = reported.measures;
    member.confusions = reported.confusions;
    member.last_step.reset();
    member.last_epoch.reset();
    if (member.left_behind) continue;
    if (reported.is_undone) {
      member.last_step = reported.last_step;  // also if it was logged, because its line may be cut
    } else if (const auto line = lines.find(number); line != lines.end()) {
      member.last_step = std::move(line->second);
    }
    if (reported.unreported && reported.unreported->step == member.steps) member.last_epoch = reported.unreported;
    if (const auto epoch = epochs.find(number); epoch != epochs.end()) {
      member.measures["train"] = std::move(epoch->second.measures);
    }
  }
}

run::Started RunReport::started(const std::string& run_dir, std::int64_t steps, const std::string& workers,
                                std::int64_t first_step) const {
  const std::int64_t steps_per_epoch = setup_.timetable.steps_per_epoch;
  run::Started event{setup_.spec().name, run_dir, first_step, steps, steps_per_epoch, {}, spec::members(setup_.spec())};
  event.epochs = (setup_.timetable.steps + steps_per_epoch - 1) / steps_per_epoch;
  const spec::TrainSpec& train = setup_.spec().train;
  if (train.checkpoint.best) {
    event.best_metric = train.checkpoint.best->metric;
    event.largest_is_best = mode_of(*train.checkpoint.best) == spec::Mode::max;
  } else if (train.early_stopping) {
    event.best_metric = train.early_stopping->metric;
    event.largest_is_best = mode_of(*train.early_stopping) == spec::Mode::max;
  }
  const BatchPlan& batch = setup_.batch;
  event.description.push_back(setup_.source.description);
  if (const auto& ensemble = setup_.spec().ensemble) {
    std::vector<std::string> varied;
    for (const spec::Varied& key : ensemble->vary) varied.push_back(key.path);
    event.description.push_back(
        counted(event.members, "member") + " along '" + ensemble->axis + "', which differ in " + join(varied, ", ") +
        (event.members > 1 ? "; lines have medians, and the best and the worst loss with its member" : ""));
  }
  event.description.push_back(counted(setup_.model.parameter_count(), "parameter") + " on " +
                              counted(spec::member_mesh(setup_.spec()).devices(), "logical device") + ", carried by " +
                              workers);
  event.description.push_back(
      "batches of " + with_commas(batch.global) + ": " + counted(batch.rows_per_device, "row") + " a device" +
      (batch.microbatches > 1 ? " in " + std::to_string(batch.microbatches) + " microbatches" : "") + ", " +
      counted(steps_per_epoch, "step") + " an epoch");
  for (const std::string& note : setup_.loaded.facts_and_notes()) event.description.push_back("note: " + note);
  for (const std::string& note : setup_.source.notes) event.description.push_back("note: " + note);
  return event;
}

void RunReport::emit(const run::Event& event) {
  for (run::Consumer* consumer : consumers_) consumer->on(event);
  while (!recorder_warnings_.empty()) {
    const run::Event warning = run::Warned{recorder_warnings_.back()};
    recorder_warnings_.pop_back();
    for (run::Consumer* consumer : consumers_) consumer->on(warning);
  }
}

std::int64_t RunReport::epoch_of(std::int64_t step) const { return (step - 1) / setup_.timetable.steps_per_epoch + 1; }

std::int64_t RunReport::examples_until(std::int64_t step) const {
  const std::int64_t steps_per_epoch = setup_.timetable.steps_per_epoch;
  return step / steps_per_epoch * setup_.batch.examples_per_epoch + step % steps_per_epoch * setup_.batch.global;
}

// The last step of a member after `step` of the run: if a guard undid a step of it, that step; else `step`.
std::int64_t RunReport::step_of(std::int64_t member, std::int64_t step) const {
  const Reported& reported = reported_of(member);
  return reported.is_undone ? reported.last_step->step : step;
}

void RunReport::note_undone_step(std::int64_t step, std::int64_t member) {
  Reported& reported = reported_of(member);
  reported.last_step = std::move(read_lines(step, {&member, 1}).at(member));
  reported.is_undone = true;
}

void RunReport::log(std::int64_t step, std::span<const std::int64_t> members) {
  Lines lines;
  std::vector<std::int64_t> read;
  for (const std::int64_t member : members) {
    const Reported& reported = reported_of(member);
    if (reported.is_undone) {
      lines.emplace(member, *reported.last_step);
    } else {
      read.push_back(member);
    }
  }
  lines.merge(read_lines(step, read));
  std::vector<run::Logged> in_order = values_of(std::move(lines));
  for (run::Logged& line : in_order) {
    line.seconds = in_order.front().seconds;  // the members took the step together
    line.examples_per_second = in_order.front().examples_per_second;
  }
  report(std::move(in_order));
}

// The log lines of the last steps of members that have none. If the resumed run has not taken a step yet, the module
// has no outputs, so the lines are the checkpoint's.
RunReport::Lines RunReport::last_lines(std::int64_t step, std::span<const std::int64_t> members) const {
  Lines lines;
  std::vector<std::int64_t> read;
  for (const std::int64_t member : members) {
    const Reported& reported = reported_of(member);
    const std::int64_t own = step_of(member, step);
    if (own == 0 || reported.logged_step == own) continue;
    if (!reported.is_undone && step != first_step_) {
      read.push_back(member);
    } else if (reported.last_step && reported.last_step->step == own) {
      lines.emplace(member, *reported.last_step);
    }
  }
  lines.merge(read_lines(step, read));
  return lines;
}

// The means of the current epochs of members that have not been reported.
RunReport::Epochs RunReport::last_epochs(std::int64_t step, std::span<const std::int64_t> members) const {
  Epochs epochs;
  std::map<std::int64_t, std::vector<std::int64_t>> read;  // by the members' last step
  for (const std::int64_t member : members) {
    const Reported& reported = reported_of(member);
    const std::int64_t own = step_of(member, step);
    if (own == 0 || reported.reported_epoch_at == own) continue;
    if (reported.unreported && reported.unreported->step == own) {
      epochs.emplace(member, *reported.unreported);
    } else {
      read[own].push_back(member);
    }
  }
  for (const auto& [own, of_members] : read) epochs.merge(read_epochs(own, of_members));
  std::erase_if(epochs, [](const auto& epoch) { return epoch.second.examples == 0; });
  return epochs;
}

void RunReport::report_last_lines(std::int64_t step, std::span<const std::int64_t> members) {
  Lines lines = last_lines(step, members);
  Epochs epochs = last_epochs(step, members);
  report(values_of(std::move(lines)));
  report(values_of(std::move(epochs)));
}

void RunReport::note_epoch(std::int64_t step, std::span<const std::int64_t> members) {
  note(values_of(last_epochs(step, members)));
}

void RunReport::report_left_behind(std::int64_t step, std::span<const std::int64_t> members) {
  const std::vector<run::Logged> lines = values_of(last_lines(step, members));
  const std::vector<run::EpochEnded> epochs = values_of(last_epochs(step, members));
  note(lines);
  note(epochs);
  records_->write_metrics(lines);
  records_->write_metrics(epochs);
}

RunReport::Lines RunReport::read_lines(std::int64_t step, std::span<const std::int64_t> members) const {
  std::vector<Handle> outputs = {module_.output(outputs_entry_, setup_.roles.used_learning_rate),
                                 module_.output(outputs_entry_, setup_.roles.grad_norm)};
  for (const std::size_t mean : setup_.roles.means) outputs.push_back(module_.output(outputs_entry_, mean));
  auto numbers = setup::numbers_of(module_, outputs, members);
  run::Logged event;
  event.step = step;
  event.epoch = epoch_of(step);
  event.seconds = seconds_since(begin_);
  const std::int64_t examples = examples_until(step);
  const double elapsed = seconds_since(logged_at_);
  event.examples_per_second = elapsed > 0 ? static_cast<double>(examples - logged_examples_) / elapsed : 0;
  Lines lines;
  for (std::size_t m = 0; m < members.size(); ++m) {
    event.member = setup_.member_number(members[m]);
    event.learning_rate = numbers[m][0].front();
    event.grad_norm = numbers[m][1].front();
    numbers[m].erase(numbers[m].begin(), numbers[m].begin() + 2);
    event.measures = model::finish_measures(setup_.model, numbers[m]);
    lines.emplace(members[m], event);
  }
  return lines;
}

void RunReport::note(const std::vector<run::Logged>& lines) {
  for (const run::Logged& line : lines) {
    Reported& reported = reported_of(line.member.value_or(0));
    reported.logged_before = std::exchange(reported.logged_step, line.step);
    if (line.step == 1) reported.first_loss = line.measures.front().second;
  }
}

void RunReport::note(const std::vector<run::EpochEnded>& epochs) {
  for (const run::EpochEnded& epoch : epochs) {
    Reported& reported = reported_of(epoch.member.value_or(0));
    reported.reported_epoch_at = epoch.step;
    reported.measures["train"] = epoch.measures;
    if (epoch.step % setup_.timetable.steps_per_epoch != 0) continue;
    reported.note_course(epoch);
  }
}

// Emits one event for each step, because members may have ended at different steps.
void RunReport::report(std::vector<run::Logged> lines) {
  if (lines.empty()) return;
  std::map<std::int64_t, std::vector<run::Logged>> by_step;
  for (run::Logged& line : lines) by_step[line.step].push_back(std::move(line));
  const std::int64_t step = by_step.rbegin()->first;
  logged_at_ = Clock::now();
  logged_examples_ = examples_until(step);
  bytes_before_line_ = records_->metrics_bytes();
  logged_step_ = step;
  for (auto& [own, of_members] : by_step) {
    note(of_members);
    emit(std::move(of_members));
  }
}

void RunReport::report(std::vector<run::EpochEnded> epochs) {
  std::erase_if(epochs, [](const run::EpochEnded& epoch) { return epoch.examples == 0; });
  if (epochs.empty()) return;
  note(epochs);
  emit(std::move(epochs));
}

void RunReport::end_epoch(std::int64_t step, std::span<const std::int64_t> members) {
  const step::Timetable& times = setup_.timetable;
  const bool is_logged = times.log_every > 0 && times.log_every <= times.steps_per_epoch;
  const bool reports = is_logged || logged_step_ == step;
  std::vector<run::EpochEnded> epochs = values_of(read_epochs(step, members));
  if (!reports) {
    for (run::EpochEnded& epoch : epochs) {
      Reported& reported = reported_of(epoch.member.value_or(0));
      reported.note_course(epoch);
      reported.unreported = std::move(epoch);
    }
    epochs.clear();
  }
  report(std::move(epochs));
  epoch_began_ = seconds_since(begin_);
  epoch_began_after_ = step;
  const auto clear = [&](std::size_t input) {
    const Handle value = module_.input(setup::train_entry, input);
    const std::vector<std::byte> zeros(module_.slice_bytes(value));
    Ticket cleared;
    for (const std::int64_t member : members) cleared = module_.write(value, {every_device, member}, zeros);
    module_.wait(cleared);
  };
  for (std::size_t sum : setup_.roles.epoch_sums) clear(sum);
  clear(setup_.roles.epoch_examples);
}

// If every step of a member was skipped there are no examples, and so no means.
RunReport::Epochs RunReport::read_epochs(std::int64_t step, std::span<const std::int64_t> members) const {
  std::vector<Handle> inputs = {module_.input(setup::train_entry, setup_.roles.epoch_examples)};
  for (const std::size_t sum : setup_.roles.epoch_sums) inputs.push_back(module_.input(setup::train_entry, sum));
  auto numbers = setup::numbers_of(module_, inputs, members);
  run::EpochEnded event;
  event.step = step;
  event.epoch = epoch_of(step);
  // If epochs have one step, end_epoch() is not called for each of them.
  const std::int64_t ended = (step - epoch_began_after_) / setup_.timetable.steps_per_epoch;
  event.seconds = (seconds_since(begin_) - epoch_began_) / static_cast<double>(std::max<std::int64_t>(ended, 1));
  Epochs epochs;
  for (std::size_t m = 0; m < members.size(); ++m) {
    const double examples = numbers[m].front().front();
    event.member = setup_.member_number(members[m]);
    event.examples = static_cast<std::int64_t>(examples);
    numbers[m].erase(numbers[m].begin());
    for (std::vector<double>& sums : numbers[m]) {
      for (double& value : sums) value /= examples;
    }
    event.measures = model::finish_measures(setup_.model, numbers[m]);
    epochs.emplace(members[m], event);
  }
  return epochs;
}

// The time of evaluations does not count as training time.
void RunReport::report_evaluations(const std::vector<evaluate::Evaluation>& evaluations,
                                   std::span<const std::int64_t> steps, const std::string& checkpoint) {
  logged_at_ += duration_of(evaluations.front().seconds);
  std::vector<run::Evaluated> events;
  for (std::size_t i = 0; i < evaluations.size(); ++i) {
    const evaluate::Evaluation& found = evaluations[i];
    if (checkpoint.empty()) {
      Reported& reported = reported_of(found.member);
      reported.measures[found.split] = found.measures;
      reported.evaluated_at[found.split] = steps[i];
      if (found.confusion) reported.confusions[found.split] = *found.confusion;
    }
    events.push_back({steps[i], epoch_of(std::max<std::int64_t>(steps[i], 1)), found.split, found.measures,
                      found.examples, found.seconds, setup_.member_number(found.member), checkpoint});
  }
  emit(std::move(events));
}

std::optional<LossCourse> RunReport::stuck_loss(std::int64_t member) const {
  const Reported& reported = reported_of(member);
  if (first_step_ > 0 || setup_.spec().model.initial_from || !reported.first_loss || !reported.last_epoch)
    return std::nullopt;
  if (reported.first_epoch->epoch == reported.last_epoch->epoch) return std::nullopt;
  const auto loss = [](const run::EpochEnded& epoch) { return epoch.measures.front().second; };
  const LossCourse course{loss(*reported.first_epoch), loss(*reported.last_epoch)};
  // The loss of a perfect fit cannot decrease.
  constexpr double rounding = 1e-12;
  if (!(course.last > rounding) || !std::isfinite(*reported.first_loss)) return std::nullopt;
  const bool never_fell = course.last >= *reported.first_loss && course.last >= course.first;
  // The loss of the first step's batch may be above the mean. If all epochs have the same examples and nothing is
  // random, their means are equal as long as parameters hardly change.
  constexpr double hardly = 1e-5;
  const bool never_moved = std::abs(course.last - course.first) <= hardly * course.first;
  return never_fell || never_moved ? std::optional(course) : std::nullopt;
}

void RunReport::add_totals(run::Ended& ended, std::int64_t steps) const {
  ended.steps = steps;
  ended.epochs = steps / setup_.timetable.steps_per_epoch;
  ended.examples_seen = examples_until(steps);
  ended.examples_skipped = ended.epochs * setup_.batch.skipped_per_epoch;
  for (std::size_t m = 0; m < reported_.size(); ++m) {
    const Reported& reported = reported_[m];
    run::MemberEnded& member = ended.members[m];
    for (const std::string split : {"train", "validation", "test"}) {
      const auto found = reported.measures.find(split);
      if (found == reported.measures.end()) continue;
      // A signal or a guard ends a run without an evaluation: the last one was of other parameters.
      const auto evaluated = reported.evaluated_at.find(split);
      if (split != "train" && (evaluated == reported.evaluated_at.end() || evaluated->second != member.steps)) continue;
      member.final_measures.emplace_back(split, found->second);
      if (const auto confusion = reported.confusions.find(split); confusion != reported.confusions.end()) {
        member.confusions.insert(*confusion);
      }
    }
    if (!setup_.spec().ensemble) continue;
    for (const spec::Varied& key : setup_.spec().ensemble->vary) {
      ended.members[m].varied.emplace_back(key.path, key.values[m]);
    }
  }
  ended.classes = setup_.source.encoding.classes;
  ended.normalised_targets = setup_.model.target_statistics.has_value();
  ended.changes = all_changes();
  ended.seconds = seconds_since(begin_);
}

}  // namespace pmaptrain::train
