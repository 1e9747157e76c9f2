// Curves: functions of the number of updates, as equations. A schedule consists of one or more.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/equations/numbers.h"
#include "core/graph/builder.h"

namespace pmaptrain::schedules {

// What the equations of a curve read.
struct CurveCall {
  Builder& b;
  const equations::Numbers& numbers;
  std::string name;  // of the curve: "learning_rate/0", the prefix of the names of its numbers
  Value t;           // f64[]; negative before the curve begins, when it is computed but not selected

  Value number(const std::string& of_curve) const { return numbers[name + "/" + of_curve]; }
};

// A function of t, the number of updates since the curve began.
struct Curve {
  std::vector<equations::Number> numbers;             // that its equations read, named without CurveCall::name
  std::function<Value(const CurveCall& call)> value;  // appends the equations; returns f64[]
  double largest;                                     // an upper bound of its values; may be infinite
  std::optional<std::int64_t> length;                 // the t from which on the curve is constant; none: it never is
};

Curve constant(double value);
// (init - end)·(1 - t/steps)^power + end up to t = steps, then end.
Curve polynomial(double init, double end, double power, std::int64_t steps);
// (init - end)·(1 + cos(π·t/steps))/2 + end up to t = steps, then end.
Curve cosine(double init, double end, std::int64_t steps);
// init·rate^(t/steps). With `staircase`, the exponent is rounded down.
Curve exponential(double init, double rate, std::int64_t steps, bool staircase);

// A curve that applies from `start` updates on, until the next segment begins.
struct Segment {
  std::int64_t start = 0;
  Curve curve;
};

// What a schedule does not reach, because the run ends before.
struct Unreached {
  std::string key;
  Place place;
  std::int64_t step = 0;
  std::string effect;  // "this boundary has no effect"
};

struct Schedule {
  std::string name;  // as in the config: "warmup_cosine_decay"
  Place place;
  std::vector<Segment> segments;  // the first begins at 0
  std::vector<Unreached> unreached = {};
  // The number of updates at which the schedule begins; none: it begins with the run. In an ensemble, members that
  // skipped steps begin at different numbers, so this is an input of the program.
  std::optional<std::int64_t> began_at = std::nullopt;
};

// The numbers (scalar inputs) that the equations of a schedule read, by segment: "learning_rate/0/end". If the schedule
// did not begin with the run, "learning_rate/began" precedes them. Lengths and the shapes of curves are part of the
// program.
std::vector<equations::Number> schedule_numbers(const Schedule& schedule);
// Appends equations for the rate after `updates` updates of the run. `updates` is i64[], the rate f64[].
Value rate_after(Builder& b, const Schedule& schedule, const equations::Numbers& numbers, Value updates);

// After how many updates of its own the schedule is constant. None if it never is (exponential decay).
std::optional<std::int64_t> end_of(const Schedule& schedule);

// An upper bound of all rates; infinity for a rate that grows without bound.
double largest_rate(const Schedule& schedule);

}  // namespace pmaptrain::schedules
