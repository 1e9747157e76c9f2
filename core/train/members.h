// What each member of an ensemble has of its own while a session trains them together. A run without an ensemble is one
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

// Why a member is finished, besides "loss_spike" and "skipped".
inline constexpr const char *early_stopping = "early_stopping", *nonfinite = "nonfinite", *replicas = "replicas";

struct MemberRun {
  MemberRun(const Setup& setup, SlicedReader& reader, std::int64_t its_number);

  std::int64_t number = 0;
  Guards guards;
  LossWatch loss_watch;
  Decisions decisions;
  std::int64_t evaluated_at = -1;
  // MemberState's, and the step after which the member was found finished.
  std::string finished, finished_why;
  std::int64_t finished_at = 0;
  bool left_behind = false;
  // For the final report.
  std::int64_t steps_skipped = 0;
  std::vector<Comparison> comparisons;

  bool is_finished() const { return !finished.empty(); }
  bool is_stopped_by_guard() const { return is_finished() && finished != early_stopping; }
  // Its parameters are what the steps of the run made of them.
  bool is_sound() const { return finished != nonfinite && finished != replicas; }
  // Those that it has behind it, where the run has `step`.
  std::int64_t steps(std::int64_t step) const;

  void continue_from(const RunState& run, const spec::TrainSpec& spec);
  MemberState state(std::int64_t step) const;
  MemberEnded ended(std::int64_t step) const;
};

// Texts about members: what is told of many at once is one text, which names them.
class MemberTexts {
 public:
  void add(std::int64_t member, const std::string& text, bool stops);
  // In the order of their first members, and leaves none. Without an ensemble no member is named.
  std::vector<Warned> take(bool is_ensemble);

 private:
  std::vector<std::pair<Warned, std::vector<std::int64_t>>> texts_;
};

class Members {
 public:
  // Both outlive this; the reader is of the module that trains.
  Members(const Setup& setup, SlicedReader& reader);

  void continue_from(const RunState& run, const spec::TrainSpec& spec);
  // Fills in what the run's members have after `step`, and the step of those that have most.
  void save(RunState& state, std::int64_t step) const;

  auto begin() { return members_.begin(); }
  auto end() { return members_.end(); }
  auto begin() const { return members_.begin(); }
  auto end() const { return members_.end(); }
  MemberRun& operator[](std::int64_t member) { return members_[static_cast<std::size_t>(member)]; }

  // Those that take the steps, in ascending order; those that are finished since the last step are among them.
  std::span<const std::int64_t> active() const { return active_; }
  // The same for Module::submit, to which nothing is all.
  std::span<const std::int64_t> submitted() const {
    return active_.size() < members_.size() ? std::span<const std::int64_t>(active_) : std::span<const std::int64_t>();
  }
  // Of the active ones, those that are sound.
  std::vector<std::int64_t> sound() const;

  void finish(MemberRun& member, std::string kind, std::string why, std::int64_t step);
  bool all_finished() const { return finished_ == std::ssize(members_); }
  bool all_stopped_by_guards() const;
  // What is told of those whose best evaluation has no checkpoint.
  std::vector<Warned> lost_best(bool is_ensemble) const;
  // Whether active() has some that are finished, which are to be left behind before the next step.
  bool has_finished() const { return finished_ + std::ssize(active_) > std::ssize(members_); }
  // Returns those that this leaves behind.
  std::vector<std::int64_t> drop_finished();

 private:
  std::vector<MemberRun> members_;
  std::vector<std::int64_t> active_;
  std::int64_t finished_ = 0;  // how many
};

}  // namespace pmaptrain::train
