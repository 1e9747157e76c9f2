#include "core/train/members.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/text.h"
#include "core/run/records/lines.h"
#include "core/train/comparisons.h"
#include "core/train/resume.h"

namespace pmaptrain::train {

MemberRun::MemberRun(const setup::Setup& setup, setup::SlicedReader& reader, std::int64_t its_number)
    : number(its_number),
      guards(setup, reader, its_number),
      loss_watch(setup),
      decisions(setup.member_spec(its_number)),
      comparisons(initial_comparisons(setup, its_number)) {}

// For a member with a step that was not finite, the number of steps before the first such step.
std::int64_t MemberRun::steps(std::int64_t step) const {
  return is_finished() ? guards.good_steps().value_or(finished_at) : step;
}

void MemberRun::continue_from(const run::RunState& run, const spec::TrainSpec& spec, const EpochLoss& now) {
  const run::MemberState& state = run.members[static_cast<std::size_t>(number)];
  evaluated_at = state.evaluated_step;
  guards.continue_from(state.steps_skipped);
  decisions.restore(state, run.best_mode);
  loss_watch.restore(state, run.step, now);
  if (!stays_finished(state, run, spec)) return;
  finished = state.finished;
  finished_why = state.finished_why;
  finished_at = state.steps;
  left_behind = state.left_behind;
}

run::MemberState MemberRun::state(std::int64_t step, const GuardState& guard) const {
  run::MemberState state;
  state.steps = steps(step);
  state.steps_skipped = guards.steps_skipped(guard);
  state.updates = guard.updates;
  state.evaluated_step = evaluated_at;
  state.finished = finished;
  state.finished_why = finished_why;
  state.left_behind = left_behind;
  decisions.save(state);
  loss_watch.save(state);
  return state;
}

run::MemberEnded MemberRun::ended(std::int64_t step) const {
  run::MemberEnded ended;
  ended.best = decisions.best();
  ended.steps = steps(step);
  ended.steps_skipped = steps_skipped;
  ended.reason = finished;
  ended.comparisons = comparisons;
  return ended;
}

void MemberTexts::add(std::int64_t member, const std::string& text, bool stops) {
  for (auto& [told, members] : texts_) {
    if (told.text != text || told.stops != stops) continue;
    members.push_back(member);
    return;
  }
  texts_.push_back({run::Warned{text, stops}, {member}});
}

std::vector<run::Warned> MemberTexts::take(bool is_ensemble) {
  std::vector<run::Warned> texts;
  for (auto& [told, members] : std::exchange(texts_, {})) {
    if (is_ensemble) told.text = run::names_of(members) + ": " + told.text;
    texts.push_back(std::move(told));
  }
  return texts;
}

Members::Members(const setup::Setup& setup, setup::SlicedReader& reader) : setup_(setup), module_(reader.module()) {
  const std::int64_t count = spec::members(setup.spec());
  members_.reserve(static_cast<std::size_t>(count));
  for (std::int64_t member = 0; member < count; ++member) {
    members_.emplace_back(setup, reader, member);
    all_.push_back(member);
  }
  active_ = all_;
}

void Members::continue_from(const run::RunState& run, const spec::TrainSpec& spec) {
  active_.clear();
  const std::vector<EpochLoss> losses = epoch_losses(all_);
  for (MemberRun& member : members_) {
    member.continue_from(run, spec, losses[static_cast<std::size_t>(member.number)]);
    if (member.is_finished()) ++finished_;
    if (!member.left_behind) active_.push_back(member.number);
  }
}

void Members::store_in(run::RunState& state, std::int64_t step) const {
  state.members.clear();
  state.step = 0;
  const std::vector<GuardState> guards = guard_states(all_);
  for (const MemberRun& member : members_) {
    state.members.push_back(member.state(step, guards[static_cast<std::size_t>(member.number)]));
    state.step = std::max(state.step, state.members.back().steps);
  }
}

template <class Predicate>
std::vector<std::int64_t> Members::active_that(Predicate&& is_wanted) const {
  std::vector<std::int64_t> found;
  std::copy_if(active_.begin(), active_.end(), std::back_inserter(found),
               [&](std::int64_t member) { return is_wanted(members_[static_cast<std::size_t>(member)]); });
  return found;
}

std::vector<std::int64_t> Members::unfinished() const {
  return active_that([](const MemberRun& member) { return !member.is_finished(); });
}

std::vector<std::int64_t> Members::sound() const {
  return active_that([](const MemberRun& member) { return member.is_sound(); });
}

void Members::finish(MemberRun& member, std::string kind, std::string why, std::int64_t step) {
  member.finished = std::move(kind);
  member.finished_why = std::move(why);
  member.finished_at = step;
  ++finished_;
}

bool Members::all_stopped_by_guards() const {
  return std::all_of(members_.begin(), members_.end(),
                     [](const MemberRun& member) { return member.is_stopped_by_guard(); });
}

std::vector<run::Warned> Members::lost_best(bool is_ensemble) const {
  MemberTexts texts;
  for (const MemberRun& member : members_) {
    const std::optional<run::Best> lost = member.decisions.lost_best();
    if (!lost) continue;
    texts.add(member.number,
              "checkpoints/best lacks the best evaluation, " + lost->metric + " " + run::compact(lost->value) +
                  " after step " + std::to_string(lost->step) + ": its checkpoint could not be written",
              false);
  }
  return texts.take(is_ensemble);
}

std::vector<std::int64_t> Members::drop_finished() {
  std::vector<std::int64_t> left;
  for (const std::int64_t number : active_) {
    MemberRun& member = (*this)[number];
    member.left_behind = member.is_finished();
    if (member.left_behind) left.push_back(number);
  }
  std::erase_if(active_, [&](std::int64_t number) { return (*this)[number].left_behind; });
  return left;
}

}  // namespace pmaptrain::train
