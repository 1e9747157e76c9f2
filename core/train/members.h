// The state of each member of an ensemble while a session trains the members together. A run without an ensemble is one
// member.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/run/records/events.h"
#include "core/run/run_state.h"
#include "core/setup/setup.h"
#include "core/setup/values.h"
#include "core/train/decisions.h"
#include "core/train/guards.h"
#include "core/train/loss_watch.h"

namespace pmaptrain::train {

// Reasons why a member is finished; others are "loss_spike" and "skipped".
inline constexpr const char *early_stopping = "early_stopping", *nonfinite = "nonfinite", *replicas = "replicas";

struct MemberRun {
  MemberRun(const setup::Setup& setup, setup::SlicedReader& reader, std::int64_t its_number);

  std::int64_t number = 0;
  Guards guards;
  LossWatch loss_watch;
  Decisions decisions;
  std::int64_t evaluated_at = -1;
  // As in MemberState. `finished_at` is the step after which the member was found to be finished.
  std::string finished, finished_why;
  std::int64_t finished_at = 0;
  bool left_behind = false;
  // For the final report.
  std::int64_t steps_skipped = 0;
  std::vector<run::Comparison> comparisons;

  bool is_finished() const { return !finished.empty(); }
  bool is_stopped_by_guard() const { return is_finished() && finished != early_stopping; }
  // Whether its parameters are usable: neither a non-finite step nor a replica mismatch ended it.
  bool is_sound() const { return finished != nonfinite && finished != replicas; }
  // The number of steps that the member has taken when the run has taken `step`.
  std::int64_t steps(std::int64_t step) const;

  void continue_from(const run::RunState& run, const spec::TrainSpec& spec, const EpochLoss& now);
  run::MemberState state(std::int64_t step, const GuardState& guard) const;
  run::MemberEnded ended(std::int64_t step) const;
};

// Messages about members. Equal messages about several members become one message that names them.
class MemberTexts {
 public:
  void add(std::int64_t member, const std::string& text, bool stops);
  // Removes and returns the messages, in the order of their first members. Without an ensemble no member is named.
  std::vector<run::Warned> take(bool is_ensemble);

 private:
  std::vector<std::pair<run::Warned, std::vector<std::int64_t>>> texts_;
};

class Members {
 public:
  // Both outlive this; `reader` reads the module that trains.
  Members(const setup::Setup& setup, setup::SlicedReader& reader);

  void continue_from(const run::RunState& run, const spec::TrainSpec& spec);
  // Sets the members' fields of `state` to their values after `step`, and RunState::step to the largest number of steps
  // of any member. All processes call it together.
  void store_in(run::RunState& state, std::int64_t step) const;

  // The numbers of all members, in ascending order.
  std::span<const std::int64_t> all() const { return all_; }
  std::vector<GuardState> guard_states(std::span<const std::int64_t> members) const {
    return train::guard_states(setup_.roles, module_, members);
  }
  std::vector<EpochLoss> epoch_losses(std::span<const std::int64_t> members) const {
    return train::epoch_losses(setup_, module_, members);
  }

  auto begin() { return members_.begin(); }
  auto end() { return members_.end(); }
  auto begin() const { return members_.begin(); }
  auto end() const { return members_.end(); }
  MemberRun& operator[](std::int64_t member) { return members_[static_cast<std::size_t>(member)]; }

  // The members that take the steps, in ascending order, including those that have finished since the last step.
  std::span<const std::int64_t> active() const { return active_; }
  // active() as an argument of Module::submit: empty if it is all members.
  std::span<const std::int64_t> submitted() const {
    return active_.size() < members_.size() ? std::span<const std::int64_t>(active_) : std::span<const std::int64_t>();
  }
  // The active members that have not finished.
  std::vector<std::int64_t> unfinished() const;
  // The active members that are sound.
  std::vector<std::int64_t> sound() const;

  void finish(MemberRun& member, std::string kind, std::string why, std::int64_t step);
  bool all_finished() const { return finished_ == std::ssize(members_); }
  bool all_stopped_by_guards() const;
  // Warnings about members whose best evaluation has no checkpoint.
  std::vector<run::Warned> lost_best(bool is_ensemble) const;
  // Whether active() has finished members, which must be dropped before the next step.
  bool has_finished() const { return finished_ + std::ssize(active_) > std::ssize(members_); }
  // Removes finished members from active() and returns them.
  std::vector<std::int64_t> drop_finished();

 private:
  template <class Predicate>
  std::vector<std::int64_t> active_that(Predicate&& is_wanted) const;

  const setup::Setup& setup_;
  Module& module_;
  std::vector<MemberRun> members_;
  std::vector<std::int64_t> all_, active_;
  std::int64_t finished_ = 0;  // number of finished members
};

}  // namespace pmaptrain::train
