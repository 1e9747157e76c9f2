#include "core/train/checks.h"

#include <optional>
#include <vector>

#include "core/base/error.h"

namespace pmaptrain::train {

// If several members have a step that was not finite, one of them alone is replayed, because a replay takes seconds.
void Checks::nonfinite(std::int64_t step, std::size_t entry, const Repeat& repeat) {
  // Of copies that differ, those of one process alone may say that a step was not finite.
  if (private_copies_ && agreement_.processes().placement.processes > 1) replicas(step);
  bool replays = true;
  const std::vector<std::int64_t> watched = members_.unfinished();
  const std::vector<GuardState> guards = members_.guard_states(watched);
  for (std::size_t i = 0; i < watched.size(); ++i) {
    const std::int64_t number = watched[i];
    MemberRun& member = members_[number];
    if (!member.guards.check_finite(guards[i], replays)) continue;
    replays = false;
    finish(member, train::nonfinite, member.guards.reason(), step);
    // The steps after the bad one have overwritten its measures in the module, so the bad step runs again.
    const std::int64_t bad = *member.guards.good_steps() + 1;
    try {
      report_.read_outputs_of(bad < step ? repeat(bad, {&number, 1}) : entry);
      report_.note_undone_step(bad, number);
    } catch (const FailedElsewhere&) {
      throw;
    } catch (const Error&) {  // the data can no longer be read; the guard's finding matters more
    }
  }
  report_.read_outputs_of(entry);
}

void Checks::loss_spikes(std::int64_t step) {
  const std::vector<std::int64_t> watched = members_.unfinished();
  const std::vector<EpochLoss> losses = members_.epoch_losses(watched);
  for (std::size_t i = 0; i < watched.size(); ++i) {
    MemberRun& member = members_[watched[i]];
    const std::optional<std::string> spike = member.loss_watch.logged(step, losses[i]);
    if (!spike) continue;
    if (setup_.spec().train.loss_spike->action == spec::SpikeAction::halt) {
      finish(member, "loss_spike", *spike, step);
    } else {
      told_.add(member.number, *spike, false);
    }
  }
}

void Checks::replicas(std::int64_t step) {
  for (const std::int64_t number : members_.active()) {
    MemberRun& member = members_[number];
    if (!member.is_finished() && member.guards.check_replicas(step, agreement_))
      finish(member, train::replicas, member.guards.reason(), step);
  }
  emit_told();
}

void Checks::all_skipped(std::int64_t step) {
  const std::vector<GuardState> guards = members_.guard_states(members_.all());
  for (MemberRun& member : members_) {
    const GuardState& guard = guards[static_cast<std::size_t>(member.number)];
    if (!member.is_finished() && member.guards.check_all_skipped(guard, step))
      finish(member, "skipped", member.guards.reason(), step);
  }
  emit_told();
}

void Checks::finish(MemberRun& member, const std::string& kind, const std::string& why, std::int64_t step) {
  members_.finish(member, kind, why, step);
  told_.add(member.number, why, kind != early_stopping);
}

void Checks::tell_skipped() {
  for (const MemberRun& member : members_) {
    const std::string skipped = member.guards.skipped_steps(member.steps_skipped);
    if (!skipped.empty()) told_.add(member.number, skipped, false);
  }
  emit_told();
}

void Checks::emit_told() {
  for (const run::Warned& warned : told_.take(setup_.spec().ensemble.has_value())) report_.emit(warned);
}

}  // namespace pmaptrain::train
