#include "core/train/evaluations.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/run/checkpoint.h"
#include "core/setup/restore.h"
#include "core/setup/start.h"

namespace pmaptrain::train {

Evaluations::Evaluations(const Setup& setup, Module& module, Members& members, RunReport& report, Agreement& agreement,
                         Evaluator::IsToStop is_to_stop)
    : setup_(setup),
      module_(module),
      members_(members),
      report_(report),
      agreement_(agreement),
      is_to_stop_(std::move(is_to_stop)) {
  for (std::size_t i = 0; i < setup.evaluations.size(); ++i) {
    evaluators_.push_back(std::make_unique<Evaluator>(module, evaluate_entry + i, setup.evaluations[i], setup.model));
  }
}

std::vector<std::int64_t> Evaluations::updates_of(const std::vector<std::int64_t>& members) const {
  std::vector<std::int64_t> updates;
  updates.reserve(members.size());
  for (const GuardState& guard : members_.guard_states(members)) updates.push_back(guard.updates);
  return updates;
}

std::vector<Evaluation> Evaluations::run(std::int64_t step) {
  const std::vector<std::int64_t> sound = members_.sound();
  return run(0, sound, updates_of(sound), step);
}

// Evaluates the parameters that the module holds for these members. `updates` is the number of updates of each.
std::vector<Evaluation> Evaluations::run(std::size_t which, const std::vector<std::int64_t>& members,
                                         const std::vector<std::int64_t>& updates, std::int64_t step) {
  if (members.empty() || is_to_stop_()) return {};
  const auto begin_all = [&](bool as_parameters) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (updates[i] == 0) set_initial_averages(module_, setup_, as_parameters, members[i]);
    }
  };
  for (std::size_t i = 0; i < members.size(); ++i) set_ema_correction(module_, setup_, updates[i], members[i]);
  begin_all(true);
  const auto progress = [&, what = "evaluating " + setup_.evaluations[which].split](std::int64_t done,
                                                                                    std::int64_t total) {
    report_.emit(Working{what, done, total});
  };
  std::vector<Evaluation> evaluations = evaluators_[which]->run(members, is_to_stop_, progress);
  begin_all(false);
  if (evaluations.empty()) return {};
  std::vector<std::int64_t> steps;
  for (const std::int64_t number : members) {
    MemberRun& member = members_[number];
    steps.push_back(member.steps(step));
    if (which == 0) member.evaluated_at = steps.back();
  }
  report_.report_evaluations(evaluations, steps);
  return evaluations;
}

std::string Evaluations::run_last(std::int64_t step, const RunFolder& folder) {
  if (evaluators_.empty() || is_to_stop_()) return "";
  std::vector<std::int64_t> all, unmeasured;
  for (const MemberRun& member : members_) {
    if (member.is_stopped_by_guard()) continue;
    all.push_back(member.number);
    if (member.evaluated_at != member.steps(step)) unmeasured.push_back(member.number);
  }
  if (all.empty()) return "";
  if (!unmeasured.empty() && run(0, unmeasured, updates_of(unmeasured), step).empty()) return "";
  if (evaluators_.size() < 2) return setup_.evaluations.front().split == "test" ? "last" : "";
  std::vector<std::int64_t> with_best;
  for (const std::int64_t number : all) {
    if (members_[number].decisions.best()) with_best.push_back(number);
  }
  std::vector<std::int64_t> updates = updates_of(with_best);
  if (with_best.empty() || !restore_best(with_best, updates, folder)) {
    return run(1, all, updates_of(all), step).empty() ? "" : "last";
  }
  if (with_best.size() < all.size()) {
    std::erase_if(all, [&](std::int64_t number) { return members_[number].decisions.best().has_value(); });
    report_.emit(Warned{names_of(all) + ": test is not evaluated, since no evaluation gave " +
                        (all.size() == 1 ? "it" : "them") + " a best value"});
  }
  return run(1, with_best, updates, step).empty() ? "" : "best";
}

// Sets the parameters of these members to those of their best evaluations, and stores in `updates` how many updates
// each member had made by then. Returns false, after a warning, if the best checkpoint cannot be loaded.
bool Evaluations::restore_best(const std::vector<std::int64_t>& members, std::vector<std::int64_t>& updates,
                               const RunFolder& folder) {
  // All processes of a run evaluate the same parameters. Process 0 tells why, if it cannot load them; what goes wrong
  // after that is the same Error in all.
  const FirstProcess first(&agreement_);
  std::optional<Checkpoint> best;
  std::string why;
  try {
    if (first.is_this()) best = load_checkpoint(folder.present_path() / "checkpoints/best");
  } catch (const Error& error) {
    why = error.diagnostics().front().message;
  }
  bool is_lost = agreement_.any(first.is_this() && !best);
  if (!is_lost) {
    try {
      best = checkpoint_of(first, best ? std::move(*best) : Checkpoint());
    } catch (const FailedElsewhere&) {
      throw;
    } catch (const Error& error) {
      why = error.diagnostics().front().message;
      is_lost = true;
    }
    is_lost = agreement_.any(is_lost);  // one process alone may lack the memory
  }
  if (is_lost) {
    report_.emit(Warned{"test is evaluated with the last parameters: " + why});
    return false;
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    restore(module_, setup_, *best, members[i]);
    updates[i] = best->state.members.at(static_cast<std::size_t>(members[i])).updates;
  }
  return true;
}

}  // namespace pmaptrain::train
