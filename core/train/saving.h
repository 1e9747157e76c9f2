// The checkpoints of a run: when one is due, and what follows from a write that is slow or fails.
#pragma once

#include <cstdint>
#include <functional>

#include "core/base/clock.h"
#include "core/run/run_state.h"
#include "core/runtime/agreement.h"
#include "core/step/timetable.h"
#include "core/train/checkpoint_writer.h"
#include "core/train/members.h"
#include "core/train/run_report.h"

namespace pmaptrain::train {

class Saving {
 public:
  // All references outlive this. If several processes carry the run, a failed write ends it, because only the process
  // that writes knows of the failure, and the others would decide by another best evaluation.
  Saving(const step::Timetable& times, CheckpointWriter& writer, Members& members, RunReport& report,
         Agreement& agreement)
      : times_(times), writer_(writer), members_(members), report_(report), agreement_(agreement) {}

  // Called before the first step. train.checkpoint.every, if it is a time, counts from here.
  void begin() { saved_at_ = Clock::now(); }
  // For a resumed run: the step of its checkpoint.
  void continue_from(std::int64_t step) { saved_step_ = step; }

  // Whether the config asks for a checkpoint after this step; and whether it asks for one now, by the clock.
  bool is_due_at(std::int64_t step) const { return times_.save_every > 0 && step % times_.save_every == 0; }
  bool is_due_by_clock() const;

  // Saves after `step`. Training goes on while the checkpoint is written. `state` is called when the previous write is
  // complete, because the members' states depend on whether it failed.
  void save(std::int64_t step, const std::function<run::RunState()>& state);
  // Waits for a write in progress, and reports a write that failed.
  void finish_write();
  // Reports a write that failed since the last call. If it was the checkpoint of a member's best evaluation, that
  // member's previous best is the best again.
  void report_failed_write();

  // Saves after the last step, unless the checkpoint of this step exists or is being written. Throws Error (failed).
  void save_last(const run::RunState& state);
  // Whether save_last() was called. If it failed, another attempt would fail too.
  bool has_saved_last() const { return has_saved_last_; }

 private:
  void await_all();

  const step::Timetable& times_;
  CheckpointWriter& writer_;
  Members& members_;
  RunReport& report_;
  Agreement& agreement_;
  std::int64_t saved_step_ = -1;  // of the newest checkpoint
  Clock::time_point saved_at_;
  bool has_told_wait_ = false, has_saved_last_ = false;
};

}  // namespace pmaptrain::train
