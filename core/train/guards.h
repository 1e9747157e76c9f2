// Checks that stop a member whose training goes wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/runtime/agreement.h"
#include "core/setup/setup.h"
#include "core/setup/values.h"

namespace pmaptrain::train {

// What the guard of the program (core/step) has found up to the last step of a member.
struct GuardState {
  // With on_nonfinite: halt, false after a step that was not finite. From that step on, the program leaves all values
  // unchanged.
  bool finite = true;
  // The number of steps that changed nothing and did not end the run. Empty if the program skips none.
  std::optional<std::int64_t> skipped;
  std::int64_t updates = 0;  // the number of steps that changed the parameters
};

// Of each of `members`, read by all processes together.
std::vector<GuardState> guard_states(const step::StepRoles& roles, Module& module,
                                     std::span<const std::int64_t> members);

class Guards {
 public:
  // Setup and reader outlive this; `reader` reads the module that trains.
  Guards(const setup::Setup& setup, setup::SlicedReader& reader, std::int64_t member)
      : setup_(setup), reader_(reader), member_(member) {}

  // Why the member must stop; empty if it need not.
  const std::string& reason() const { return reason_; }
  bool must_stop() const { return !reason_.empty(); }
  // After a step that was not finite: the number of good steps before it.
  std::optional<std::int64_t> good_steps() const { return good_steps_; }

  // For a resumed run: the number of steps that it skipped before.
  void continue_from(std::int64_t steps_skipped) { skipped_before_ = steps_skipped; }
  // The number of skipped steps: with on_nonfinite: skip, now or before the run was resumed, and without a label that
  // counts.
  std::int64_t steps_skipped(const GuardState& state) const { return state.skipped.value_or(skipped_before_); }
  // A warning about skipped steps, for a run that ends well; empty without skipped steps.
  std::string skipped_steps(std::int64_t skipped) const;

  // Each check returns whether it found a reason to stop, if there was none before. check_finite() replays the step to
  // explain it, if `replays`, and says what may help.
  bool check_finite(const GuardState& state, bool replays = true);
  bool check_all_skipped(const GuardState& state, std::int64_t steps);
  // Compares the private copies of the logical devices (replicas.h); in a single process at most once after each step.
  bool check_replicas(std::int64_t step, Agreement& agreement);

 private:
  // What may help after a step that was not finite, after so many updates.
  std::string advice(std::int64_t updates) const;
  // What a replay of the step tells, in every process, with advice unless few examples are the reason. A process that
  // has the member replays it.
  std::string replayed(std::int64_t step, std::int64_t updates) const;
  std::string replayed_here(std::int64_t step, std::int64_t updates) const;
  // Whether the batch of a step has an example with a weight; true where that cannot be read.
  bool weighs_anything(std::int64_t step) const;

  const setup::Setup& setup_;
  setup::SlicedReader& reader_;
  std::int64_t member_;
  std::string reason_;
  std::optional<std::int64_t> good_steps_;
  std::int64_t compared_at_ = -1, skipped_before_ = 0;
};

}  // namespace pmaptrain::train
