#include "core/train/evaluations.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/run/checkpoint.h"
#include "core/setup/restore.h"
#include "core/setup/start.h"

namespace pmaptrain::train {

Evaluations::Evaluations(const setup::Setup& setup, Module& module, Members& members, RunReport& report,
                         Agreement& agreement, evaluate::Evaluator::IsToStop is_to_stop)
    : setup_(setup),
      module_(module),
      members_(members),
      report_(report),
      agreement_(agreement),
      is_to_stop_(std::move(is_to_stop)) {
  for (std::size_t i = 0; i < setup.evaluations.size(); ++i) {
    evaluators_.push_back(
        std::make_unique<evaluate::Evaluator>(module, setup::evaluate_entry + i, setup.evaluations[i], setup.model));
  }
}

std::vector<std::int64_t> Evaluations::updates_of(const std::vector<std::int64_t>& members) const {
  std::vector<std::int64_t> updates;
  updates.reserve(members.size());
  for (const GuardState& guard : members_.guard_states(members)) updates.push_back(guard.updates);
  return updates;
}

std::vector<evaluate::Evaluation> Evaluations::run(std::int64_t step) {
  const std::vector<std::int64_t> sound = members_.sound();
  return run(0, sound, updates_of(sound), step);
}

// Evaluates the parameters that the module holds for these members. `updates` is the number of updates of each.
std::vector<evaluate::Evaluation> Evaluations::run(std::size_t which, const std::vector<std::int64_t>& members,
                                                   const std::vector<std::int64_t>& updates, std::int64_t step,
                                                   const std::string& checkpoint) {
  if (members.empty() || is_to_stop_()) return {};
  const auto begin_all = [&](bool as_parameters) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (updates[i] == 0) setup::set_initial_averages(module_, setup_, as_parameters, members[i]);
    }
  };
  for (std::size_t i = 0; i < members.size(); ++i) setup::set_ema_correction(module_, setup_, updates[i], members[i]);
  begin_all(true);
  const auto progress = [&, what = "evaluating " + setup_.evaluations[which].split](std::int64_t done,
                                                                                    std::int64_t total) {
    report_.emit(run::Working{what, done, total});
  };
  std::vector<evaluate::Evaluation> evaluations = evaluators_[which]->run(members, is_to_stop_, progress);
  begin_all(false);
  if (evaluations.empty()) return {};
  std::vector<std::int64_t> steps;
  for (const std::int64_t number : members) {
    MemberRun& member = members_[number];
    steps.push_back(checkpoint.empty() ? member.steps(step) : member.decisions.best()->step);
    if (which == 0) member.evaluated_at = steps.back();
  }
  report_.report_evaluations(evaluations, steps, checkpoint);
  return evaluations;
}

// The first split of members that were not evaluated after their last step, then test, with the last parameters.
// Returns the evaluations of test.
std::vector<evaluate::Evaluation> Evaluations::evaluate_last(const std::vector<std::int64_t>& members,
                                                             std::int64_t step) {
  if (members.empty() || is_to_stop_()) return {};
  std::vector<std::int64_t> unmeasured;
  for (const std::int64_t number : members) {
    if (members_[number].evaluated_at != members_[number].steps(step)) unmeasured.push_back(number);
  }
  if (!unmeasured.empty() && run(0, unmeasured, updates_of(unmeasured), step).empty()) return {};
  return evaluators_.size() > 1 ? run(1, members, updates_of(members), step) : std::vector<evaluate::Evaluation>();
}

std::vector<std::optional<run::Selected>> Evaluations::run_last(std::int64_t step, const run::RunFolder& folder) {
  std::vector<std::optional<run::Selected>> selected(members_.all().size());
  if (evaluators_.empty()) return selected;
  std::vector<std::int64_t> all, with_best, with_others;
  for (const MemberRun& member : members_) {
    if (!member.is_stopped_by_guard()) all.push_back(member.number);
    if (!member.decisions.best()) continue;
    with_best.push_back(member.number);
    const bool is_last = member.decisions.best()->step == member.steps(step);
    if (!is_last && !member.is_stopped_by_guard()) with_others.push_back(member.number);
  }
  const std::vector<evaluate::Evaluation> of_last = evaluate_last(all, step);
  if (with_best.empty()) return selected;
  const std::optional<run::Checkpoint> best = load_best(folder);
  if (!best) return selected;
  for (const std::int64_t number : with_best) {
    selected[static_cast<std::size_t>(number)] = selected_of(members_[number], best->state);
  }
  const auto add = [&](const evaluate::Evaluation& test) {
    run::Selected& of_member = *selected[static_cast<std::size_t>(test.member)];
    if (test.confusion) of_member.confusions[test.split] = *test.confusion;
    of_member.measures.emplace_back(test.split, test.measures);
  };
  for (const evaluate::Evaluation& test : of_last) {
    const auto is_other = std::find(with_others.begin(), with_others.end(), test.member);
    if (selected[static_cast<std::size_t>(test.member)] && is_other == with_others.end()) add(test);
  }
  if (evaluators_.size() < 2 || with_others.empty() || is_to_stop_()) return selected;
  std::vector<std::int64_t> updates;
  for (const std::int64_t number : with_others) {
    setup::restore(module_, setup_, *best, number);
    updates.push_back(best->state.members.at(static_cast<std::size_t>(number)).updates);
  }
  for (const evaluate::Evaluation& test : run(1, with_others, updates, step, "best")) add(test);
  return selected;
}

// What was measured when the checkpoint was taken: the means of its epoch, and the evaluation that made it the best.
run::Selected Evaluations::selected_of(const MemberRun& member, const run::RunState& best) const {
  const run::MemberState& state = best.members.at(static_cast<std::size_t>(member.number));
  run::Selected selected{"best", member.decisions.best()->step, {}};
  for (const std::string& split : {std::string("train"), setup_.evaluations.front().split}) {
    const auto found = state.measures.find(split);
    if (found != state.measures.end()) selected.measures.emplace_back(split, found->second);
    const auto confusion = state.confusions.find(split);
    if (confusion != state.confusions.end()) selected.confusions.insert(*confusion);
  }
  return selected;
}

// None, after a warning, if the best checkpoint cannot be loaded.
std::optional<run::Checkpoint> Evaluations::load_best(const run::RunFolder& folder) {
  // All processes of a run evaluate the same parameters. Process 0 tells why, if it cannot load them; what goes wrong
  // after that is the same Error in all.
  const run::FirstProcess first(&agreement_);
  std::optional<run::Checkpoint> best;
  std::string why;
  try {
    if (first.is_this()) best = run::load_checkpoint(run::find_checkpoint(folder.present_path(), "best"));
  } catch (const Error& error) {
    why = error.diagnostics().front().message;
  }
  bool is_lost = agreement_.any(first.is_this() && !best);
  if (!is_lost) {
    try {
      best = run::checkpoint_of(first, best ? std::move(*best) : run::Checkpoint());
    } catch (const FailedElsewhere&) {
      throw;
    } catch (const Error& error) {
      why = error.diagnostics().front().message;
      is_lost = true;
    }
    is_lost = agreement_.any(is_lost);  // one process alone may lack the memory
  }
  if (!is_lost) return best;
  report_.emit(run::Warned{"the measures of the best checkpoint are not known: " + why});
  return std::nullopt;
}

}  // namespace pmaptrain::train
