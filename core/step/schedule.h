// Schedules of the learning rate in steps: as equations of a program, and the rates that these give.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/graph/builder.h"
#include "core/model/numbers.h"
#include "core/spec/spec.h"

namespace pmaptrain::train {

// Curves of t, the updates done since a curve began.
struct Constant {
  double value = 0;
};
// (init - end)·(1 - t/steps)^power + end up to t = steps, then end.
struct PolynomialCurve {
  double init = 0, end = 0, power = 1;
  std::int64_t steps = 1;
};
// (init - end)·(1 + cos(π·t/steps))/2 + end up to t = steps, then end.
struct CosineCurve {
  double init = 0, end = 0;
  std::int64_t steps = 1;
};
// init·rate^(t/steps), the exponent rounded down in a staircase.
struct ExponentialCurve {
  double init = 0, rate = 1;
  std::int64_t steps = 1;
  bool staircase = false;
};
using Curve = std::variant<Constant, PolynomialCurve, CosineCurve, ExponentialCurve>;

// A curve that applies from `start` updates on, in place of those before it in the schedule.
struct Segment {
  std::int64_t start = 0;
  Curve curve;
};

struct Schedule {
  std::string name;  // the config's: "warmup_cosine_decay"
  Place place;
  std::vector<Segment> segments;  // the first begins at 0
  // The count of updates that it counts from; none: the first one of the run. In an ensemble, members that left out
  // steps have other counts, so it is a number of the program.
  std::optional<std::int64_t> began = std::nullopt;
};

// `steps_of(duration, key)` converts a duration (train::to_steps). A schedule without a duration of its own ends with
// the run, after `length` steps. All rates are multiplied by `factor`. Throws Error (usage) for boundaries that do not
// ascend, a warm-up that is not shorter than the decay, and a schedule that begins after the end of the run.
using StepsOf = std::function<std::int64_t(const spec::Duration& duration, const std::string& key)>;
Schedule make_schedule(const spec::LearningRate& rate, const StepsOf& steps_of, std::int64_t length, double factor);

// What its equations read, by segment: "learning_rate/0/end"; before them "learning_rate/began" of a schedule that did
// not begin with the run. Lengths and the shapes of curves are part of the program.
std::vector<model::Number> schedule_numbers(const Schedule& schedule);
// Appends the rate after `updates` of the run, i64[], as f64[].
Value rate_after(Builder& b, const Schedule& schedule, const model::Numbers& numbers, Value updates);
// What these equations give.
double rate_after(const Schedule& schedule, std::int64_t updates);

// The number of updates since it began after which the rate no longer changes. None for an exponential decay.
std::optional<std::int64_t> end_of(const Schedule& schedule);

// No rate is larger; infinity where one grows without bound.
double largest_rate(const Schedule& schedule);

}  // namespace pmaptrain::train
