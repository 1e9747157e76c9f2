#include "core/train/saving.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/run/records/lines.h"

namespace pmaptrain::train {

bool Saving::is_due_by_clock() const {
  return times_.save_seconds > 0 && seconds_between(saved_at_, coarse_now()) >= times_.save_seconds;
}

void Saving::save(std::int64_t step, const std::function<run::RunState()>& state) {
  const Clock::time_point begin = Clock::now();
  finish_write();
  const double waited = seconds_since(begin);
  if (waited > 0.5 && !has_told_wait_) {
    has_told_wait_ = true;
    report_.emit(
        run::Warned{"step " + std::to_string(step) + " waited " + run::duration(waited) +
                    " until the checkpoint before was written: the disk is slower than train.checkpoint asks for"});
  }
  await_all();
  const run::RunState present = state();
  writer_.save(present);
  saved_step_ = step;
  saved_at_ = Clock::now();
}

// A process that has failed answers this, and does not take part in the reads that follow.
void Saving::await_all() {
  if (writer_.is_divided()) agreement_.any(false);
}

void Saving::finish_write() {
  writer_.wait();
  report_failed_write();
}

void Saving::report_failed_write() {
  const auto failure = writer_.take_failure();
  if (!failure) return;
  if (agreement_.processes().placement.processes > 1)
    throw Error(ExitStatus::failed,
                Diagnostic{"resource", {}, "a checkpoint could not be written: " + failure->why, {}, {}});
  saved_step_ = -1;
  for (MemberRun& member : members_) member.decisions.revert_best(failure->step);
  report_.emit(run::Warned{"a checkpoint could not be written: " + failure->why + "; training goes on"});
}

void Saving::save_last(const run::RunState& state) {
  has_saved_last_ = true;
  report_.records().flush();
  const bool has_finished = std::any_of(state.members.begin(), state.members.end(), [](const run::MemberState& member) {
    return !member.finished.empty() && !member.left_behind;
  });
  if (saved_step_ == state.step && !state.evaluation_is_due && !has_finished) {
    // The checkpoint exists. The process that wrote it may have been killed before it removed older ones.
    writer_.prune();
  } else {
    await_all();
    writer_.save_now(state);
  }
}

}  // namespace pmaptrain::train
