// From a schedule of a config to its curves in steps.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/schedules/curves.h"
#include "core/schedules/schedule.h"

namespace pmaptrain::schedules {

using declare::Duration;

// `steps_of(duration, key)` converts a duration to steps.
using StepsOf = std::function<std::int64_t(const Duration& duration, const std::string& key)>;

// What ScheduleRules::add() adds to. Rates are multiplied by a factor, and a schedule without a duration of its own
// ends with the run.
class Making {
 public:
  Making(const StepsOf& steps_of, std::int64_t run, double factor, Schedule& out)
      : steps_of_(steps_of), run_(run), factor_(factor), out_(out) {}

  // `is_reached`: whether the run reaches its first update.
  void add_rate(const LearningRate& rate, std::int64_t start, bool is_reached = true);
  // Of scaled rates.
  void add(std::int64_t start, Curve curve) { out_.segments.push_back({start, std::move(curve)}); }
  double scaled(double rate) const { return rate * factor_; }

  std::int64_t steps(const Duration& duration, const char* key) const { return steps_of_(duration, key); }
  // The duration of a schedule that begins at `start`: the one in the config or, without one, up to the end of the run.
  // Throws Error (usage) if it begins after the end.
  std::int64_t steps(const std::optional<Duration>& given, const char* key, std::int64_t start) const;
  // The steps of a boundary, which is behind the one at `before`. Throws Error (usage) if it is not.
  std::int64_t next_boundary(const Duration& duration, const char* key, std::int64_t before) const;
  // Whether the run reaches `steps` after `start`. If not, `effect` says what it means.
  bool reaches(const Duration& boundary, std::int64_t steps, const char* key, std::int64_t start, const char* effect);

  // Throws Error (usage) at the place of the schedule, or at `place`.
  [[noreturn]] void refuse(std::string message, std::string help) const {
    refuse(place_, std::move(message), std::move(help));
  }
  [[noreturn]] static void refuse(const Place& place, std::string message, std::string help);

 private:
  const StepsOf& steps_of_;
  const std::int64_t run_;  // its length in steps
  const double factor_;
  Schedule& out_;
  Place place_;
  bool is_reached_ = true;  // the schedule that is being added
};

// The curves of a rate, for a run of `length` steps, all multiplied by `factor`. Throws Error (usage) for boundaries
// that do not ascend, a warm-up that is not shorter than the decay, and a schedule that begins after the end of the
// run.
Schedule make_schedule(const LearningRate& rate, const StepsOf& steps_of, std::int64_t length, double factor);

template <class Kind>
class Held final : public declare::Holds<ScheduleRules, Kind> {
  using declare::Holds<ScheduleRules, Kind>::kind_;
  static_assert(
      requires(const Kind& kind, Making& making, std::int64_t start) { kind.add(making, start); },
      "this schedule has no add(): its curves");

 public:
  using declare::Holds<ScheduleRules, Kind>::Holds;

  void add(Making& making, std::int64_t start) const override { kind_.add(making, start); }
};

}  // namespace pmaptrain::schedules
