#include "core/step/schedule.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/equations/arithmetic.h"
#include "core/ops/all.h"
#include "core/runtime/interpreter.h"

namespace pmaptrain::train {
namespace {

using equations::add;
using equations::cast;
using equations::div;
using equations::mul;
using equations::Number;
using equations::Numbers;
using equations::sub;

// t/steps, at most 1.
Value fraction(const CurveCall& call, std::int64_t steps) {
  const Value end = call.b.constant(DType::f64, static_cast<double>(steps));
  const Value passed = call.b.emit(ops::Min{}, {call.t, end});
  return div(call.b, passed, end);
}

// For a curve from `init` to `end`: its numbers, and its value end + share·(init - end).
std::vector<Number> ends(double init, double end) {
  return {{"change", init - end, DType::f64}, {"end", end, DType::f64}};
}
Value between(const CurveCall& call, Value share) {
  return add(call.b, mul(call.b, share, call.number("change")), call.number("end"));
}

// The curves: one function for each.

Curve constant(double value) {
  return {{{"value", value, DType::f64}}, [](const CurveCall& call) { return call.number("value"); }, value, 0};
}

// (init - end)·(1 - t/steps)^power + end up to t = steps, then end.
Curve polynomial(double init, double end, double power, std::int64_t steps) {
  const bool is_straight = !(power < 1.0 || power > 1.0);
  std::vector<Number> numbers = ends(init, end);
  if (!is_straight) numbers.push_back({"power", power, DType::f64});
  const auto value = [is_straight, steps](const CurveCall& call) {
    const Value passed = fraction(call, steps);
    Value left = sub(call.b, call.b.constant(DType::f64, 1.0), passed);
    if (!is_straight) left = call.b.emit(ops::Pow{}, {left, call.number("power")});
    return between(call, left);
  };
  return {std::move(numbers), value, std::max(init, end), steps};
}

// (init - end)·(1 + cos(π·t/steps))/2 + end up to t = steps, then end.
Curve cosine(double init, double end, std::int64_t steps) {
  const auto value = [steps](const CurveCall& call) {
    const Value passed = fraction(call, steps);
    const Value wave = call.b.emit(ops::Cos{}, {mul(call.b, passed, std::numbers::pi)});
    return between(call, mul(call.b, add(call.b, wave, 1.0), 0.5));
  };
  return {ends(init, end), value, std::max(init, end), steps};
}

// init·rate^(t/steps). With `staircase`, the exponent is rounded down.
Curve exponential(double init, double rate, std::int64_t steps, bool staircase) {
  const auto value = [steps, staircase](const CurveCall& call) {
    Value exponent = div(call.b, call.t, static_cast<double>(steps));
    if (staircase) exponent = call.b.emit(ops::Floor{}, {exponent});
    const Value power = call.b.emit(ops::Pow{}, {call.number("rate"), exponent});
    return mul(call.b, power, call.number("init"));
  };
  const double largest = rate <= 1.0 ? init : std::numeric_limits<double>::infinity();
  return {{{"rate", rate, DType::f64}, {"init", init, DType::f64}}, value, largest, std::nullopt};
}

// Converts the config's schedules to segments: an overload of add_schedule for each, which adds one or more curves.
class Maker {
 public:
  Maker(const StepsOf& steps_of, std::int64_t length, double factor, Schedule& out)
      : steps_of_(steps_of), length_(length), factor_(factor), out_(out) {}

  void add_rate(const spec::LearningRate& rate, std::int64_t start) {
    if (!rate.schedule) return add_segment(start, constant(rate.value * factor_));
    place_ = rate.place;
    std::visit(
        [&](const auto& kind) {
          static_assert(
              requires { add_schedule(kind, start); }, "this schedule has no add_schedule() in core/step/schedule.cpp");
          add_schedule(kind, start);
        },
        *rate.schedule);
  }

 private:
  [[noreturn]] static void refuse(const Place& place, std::string message, std::string help) {
    throw Error(ExitStatus::usage, Diagnostic{"config", place, std::move(message), std::move(help), {}});
  }

  void add_segment(std::int64_t start, Curve curve) { out_.segments.push_back({start, std::move(curve)}); }

  // The duration of a schedule that begins at `start`: the one in the config or, without one, up to the end of the run.
  std::int64_t duration(const std::optional<spec::Duration>& given, const char* key, std::int64_t start) const {
    if (given) return steps_of_(*given, key);
    if (start < length_) return length_ - start;
    refuse(place_,
           std::string(key) + " is what is left of the run, but this schedule begins after " + with_commas(start) +
               " of " + counted(length_, "step"),
           std::string("give it a ") + key + ", or begin it earlier");
  }

  void add_schedule(const spec::schedule::Linear& linear, std::int64_t start) {
    const std::int64_t steps = duration(linear.transition, "transition", start);
    add_segment(start, polynomial(linear.init_value * factor_, linear.end_value * factor_, 1.0, steps));
  }

  void add_schedule(const spec::schedule::Polynomial& given, std::int64_t start) {
    const std::int64_t steps = duration(given.transition, "transition", start);
    add_segment(start, polynomial(given.init_value * factor_, given.end_value * factor_, given.power, steps));
  }

  void add_schedule(const spec::schedule::CosineDecay& given, std::int64_t start) {
    const double init = given.init_value * factor_;
    add_segment(start, cosine(init, given.alpha * init, duration(given.decay, "decay", start)));
  }

  void add_schedule(const spec::schedule::ExponentialDecay& given, std::int64_t start) {
    add_segment(start, exponential(given.init_value * factor_, given.decay_rate,
                                   steps_of_(given.transition, "transition"), given.staircase));
  }

  void add_schedule(const spec::schedule::WarmupCosineDecay& warmup, std::int64_t start) {
    const std::int64_t rise = steps_of_(warmup.warmup, "warmup"), both = duration(warmup.decay, "decay", start);
    if (rise >= both) {
      refuse(warmup.warmup.place,
             "warmup is " + counted(rise, "step") + ", but decay, which counts the warm-up, is " +
                 counted(both, "step") + (warmup.decay ? "" : ": what is left of the run"),
             "give a warmup of at most " + counted(both - 1, "step") + ", or a longer decay");
    }
    const double peak = warmup.peak_value * factor_;
    if (rise > 0) add_segment(start, polynomial(warmup.init_value * factor_, peak, 1.0, rise));
    add_segment(start + rise, cosine(peak, warmup.end_value * factor_, both - rise));
  }

  void add_schedule(const spec::schedule::PiecewiseConstant& pieces, std::int64_t start) {
    double value = pieces.init_value * factor_;
    add_segment(start, constant(value));
    std::int64_t before = -1;
    for (const spec::schedule::Scale& scale : pieces.boundaries_and_scales) {
      before = next_boundary(scale.boundary, "boundaries_and_scales", before);
      value *= scale.scale;
      add_segment(start + before, constant(value));
    }
  }

  void add_schedule(const spec::schedule::CosineOnecycle& cycle, std::int64_t start) {
    // The values of Optax's div_factor and final_div_factor.
    constexpr double div_factor = 25.0, final_div_factor = 1e4;
    const std::int64_t steps = duration(cycle.transition, "transition", start);
    const auto rise = static_cast<std::int64_t>(cycle.pct_start * static_cast<double>(steps));
    if (rise < 1) {
      refuse(place_, "pct_start " + exact(cycle.pct_start) + " of " + counted(steps, "step") + " comes to no step",
             "give a larger pct_start, or a longer transition");
    }
    const double peak = cycle.peak_value * factor_, init = peak / div_factor;
    add_segment(start, cosine(init, peak, rise));
    add_segment(start + rise, cosine(peak, init / final_div_factor, steps - rise));
  }

  void add_schedule(const spec::schedule::Join& join, std::int64_t start) {
    if (join.boundaries.size() + 1 != join.schedules.size()) {
      refuse(place_,
             "join has " + counted(static_cast<std::int64_t>(join.schedules.size()), "schedule") + " and " +
                 std::to_string(join.boundaries.size()) + (join.boundaries.size() == 1 ? " boundary" : " boundaries"),
             "give one boundary between each two schedules");
    }
    std::int64_t boundary = -1;
    for (std::size_t i = 0; i < join.schedules.size(); ++i) {
      if (i > 0) boundary = next_boundary(join.boundaries[i - 1], "boundaries", boundary);
      add_rate(join.schedules[i], start + std::max<std::int64_t>(boundary, 0));
    }
  }

  std::int64_t next_boundary(const spec::Duration& duration, const std::string& key, std::int64_t before) const {
    const std::int64_t steps = steps_of_(duration, key);
    if (steps > before) return steps;
    refuse(duration.place,
           key + ": this boundary is " + counted(steps, "step") + ", the one before it " + counted(before, "step"),
           "boundaries count from the start of the schedule and ascend");
  }

  const StepsOf& steps_of_;
  const std::int64_t length_;
  const double factor_;
  Schedule& out_;
  Place place_;
};

constexpr const char* began_name = "learning_rate/began";

std::string segment_name(std::size_t index) { return "learning_rate/" + std::to_string(index); }

}  // namespace

Schedule make_schedule(const spec::LearningRate& rate, const StepsOf& steps_of, std::int64_t length, double factor) {
  Schedule schedule{rate.schedule ? spec::to_string(*rate.schedule) : "learning_rate", rate.place, {}, {}};
  Maker(steps_of, length, factor, schedule).add_rate(rate, 0);
  return schedule;
}

std::vector<Number> schedule_numbers(const Schedule& schedule) {
  std::vector<Number> all;
  if (schedule.began_at) all.push_back({began_name, static_cast<double>(*schedule.began_at), DType::f64});
  for (std::size_t i = 0; i < schedule.segments.size(); ++i) {
    for (const Number& number : schedule.segments[i].curve.numbers) {
      all.push_back({segment_name(i) + "/" + number.name, number.value, number.dtype});
    }
  }
  return all;
}

Value rate_after(Builder& b, const Schedule& schedule, const Numbers& numbers, Value updates) {
  const Builder::Scope scope(b, {schedule.name, schedule.place});
  Value count = cast(b, updates, DType::f64);
  if (schedule.began_at) count = sub(b, count, numbers[began_name]);
  std::optional<Value> rate;
  for (std::size_t i = 0; i < schedule.segments.size(); ++i) {
    const Segment& segment = schedule.segments[i];
    const auto start = static_cast<double>(segment.start);
    const Value t = segment.start == 0 ? count : sub(b, count, start);
    const Value value = segment.curve.value({b, numbers, segment_name(i), t});
    if (!rate) {
      rate = value;
      continue;
    }
    const Value before = b.emit(ops::Lt{}, {count, b.constant(DType::f64, start)});
    rate = equations::select(b, before, *rate, value);
  }
  return *rate;
}

double rate_after(const Schedule& schedule, std::int64_t updates) {
  Program program;
  Builder b(program, all_ops());
  const Value count = b.input(Group::hyper, "updates", {DType::i64, {}, {}});
  const std::vector<Number> numbers = schedule_numbers(schedule);
  const std::vector<Value> values = equations::declare_numbers(b, numbers);
  b.output("rate", rate_after(b, schedule, {numbers, values}, count));
  const auto bytes_of = [](const auto& value) {
    std::vector<std::byte> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return PerDevice{bytes};
  };
  std::map<std::string, PerDevice> inputs{{"updates", bytes_of(updates)}};
  for (const Number& number : numbers) inputs[number.name] = bytes_of(number.value);
  const InterpreterResult result = interpret(program, std::move(inputs));
  double rate = 0;
  std::memcpy(&rate, result.outputs.at("rate").front().data(), sizeof rate);
  return rate;
}

std::optional<std::int64_t> end_of(const Schedule& schedule) {
  const Segment& last = schedule.segments.back();
  std::optional<std::int64_t> end = last.curve.length;
  if (end) *end += last.start;
  return end;
}

double largest_rate(const Schedule& schedule) {
  double most = 0;
  for (const Segment& segment : schedule.segments) most = std::max(most, segment.curve.largest);
  return most;
}

}  // namespace pmaptrain::train
