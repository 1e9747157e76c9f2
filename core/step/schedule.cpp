#include "core/step/schedule.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/model/arithmetic.h"
#include "core/ops/all.h"
#include "core/runtime/interpreter.h"

namespace pmaptrain::train {
namespace {

using model::add;
using model::cast;
using model::div;
using model::mul;
using model::Number;
using model::Numbers;
using model::sub;

// Converts the config's schedules to segments. Each schedule becomes one or more curves.
class Maker {
 public:
  Maker(const StepsOf& steps_of, std::int64_t length, double factor, Schedule& out)
      : steps_of_(steps_of), length_(length), factor_(factor), out_(out) {}

  void add_rate(const spec::LearningRate& rate, std::int64_t start) {
    if (!rate.schedule) return add_segment(start, Constant{rate.value * factor_});
    place_ = rate.place;
    std::visit([&](const auto& kind) { add_schedule(kind, start); }, *rate.schedule);
  }

 private:
  [[noreturn]] static void refuse(const Place& place, std::string message, std::string help) {
    throw Error(ExitStatus::usage, Diagnostic{"config", place, std::move(message), std::move(help), {}});
  }

  void add_segment(std::int64_t start, Curve curve) { out_.segments.push_back({start, curve}); }

  // The duration of a schedule that begins at `start`. Without a duration in the config, it lasts until the run ends.
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
    add_segment(start, PolynomialCurve{linear.init_value * factor_, linear.end_value * factor_, 1.0, steps});
  }

  void add_schedule(const spec::schedule::Polynomial& polynomial, std::int64_t start) {
    const std::int64_t steps = duration(polynomial.transition, "transition", start);
    add_segment(start, PolynomialCurve{polynomial.init_value * factor_, polynomial.end_value * factor_,
                                       polynomial.power, steps});
  }

  void add_schedule(const spec::schedule::CosineDecay& cosine, std::int64_t start) {
    const double init = cosine.init_value * factor_;
    add_segment(start, CosineCurve{init, cosine.alpha * init, duration(cosine.decay, "decay", start)});
  }

  void add_schedule(const spec::schedule::ExponentialDecay& exponential, std::int64_t start) {
    add_segment(start, ExponentialCurve{exponential.init_value * factor_, exponential.decay_rate,
                                        steps_of_(exponential.transition, "transition"), exponential.staircase});
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
    add_segment(start, PolynomialCurve{warmup.init_value * factor_, peak, 1.0, rise});
    add_segment(start + rise, CosineCurve{peak, warmup.end_value * factor_, both - rise});
  }

  void add_schedule(const spec::schedule::PiecewiseConstant& pieces, std::int64_t start) {
    double value = pieces.init_value * factor_;
    add_segment(start, Constant{value});
    std::int64_t before = 0;
    for (const spec::schedule::Scale& scale : pieces.boundaries_and_scales) {
      before = next_boundary(scale.boundary, "boundaries_and_scales", before);
      value *= scale.scale;
      add_segment(start + before, Constant{value});
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
    add_segment(start, CosineCurve{init, peak, rise});
    add_segment(start + rise, CosineCurve{peak, init / final_div_factor, steps - rise});
  }

  void add_schedule(const spec::schedule::Join& join, std::int64_t start) {
    if (join.boundaries.size() + 1 != join.schedules.size()) {
      refuse(place_,
             "join has " + counted(static_cast<std::int64_t>(join.schedules.size()), "schedule") + " and " +
                 std::to_string(join.boundaries.size()) + (join.boundaries.size() == 1 ? " boundary" : " boundaries"),
             "give one boundary between each two schedules");
    }
    std::int64_t boundary = 0;
    for (std::size_t i = 0; i < join.schedules.size(); ++i) {
      if (i > 0) boundary = next_boundary(join.boundaries[i - 1], "boundaries", boundary);
      add_rate(join.schedules[i], start + boundary);
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

// The curves. `t` is f64[] and may be negative: before its start a curve is computed but not selected.

bool is_straight(const PolynomialCurve& curve) { return !(curve.power < 1.0 || curve.power > 1.0); }

// t/steps, at most 1.
Value fraction(Builder& b, Value t, std::int64_t steps) {
  const Value end = b.constant(DType::f64, static_cast<double>(steps));
  const Value passed = b.emit(ops::Min{}, {t, end});
  return div(b, passed, end);
}

// The numbers of a curve. Their names begin with `name`.
std::vector<Number> numbers_of(const std::string& name, double value, double end) {
  return {{name + "/change", value - end, DType::f64}, {name + "/end", end, DType::f64}};
}
std::vector<Number> numbers_of(const std::string& name, const Constant& constant) {
  return {{name + "/value", constant.value, DType::f64}};
}
std::vector<Number> numbers_of(const std::string& name, const PolynomialCurve& curve) {
  std::vector<Number> all = numbers_of(name, curve.init, curve.end);
  if (!is_straight(curve)) all.push_back({name + "/power", curve.power, DType::f64});
  return all;
}
std::vector<Number> numbers_of(const std::string& name, const CosineCurve& curve) {
  return numbers_of(name, curve.init, curve.end);
}
std::vector<Number> numbers_of(const std::string& name, const ExponentialCurve& curve) {
  return {{name + "/rate", curve.rate, DType::f64}, {name + "/init", curve.init, DType::f64}};
}

constexpr const char* began_name = "learning_rate/began";

std::string segment_name(std::size_t index) { return "learning_rate/" + std::to_string(index); }

// The value of a curve at `t`, from the numbers whose names begin with `name`.
class CurveBuilder {
 public:
  CurveBuilder(Builder& b, const Numbers& numbers, std::string name, Value t)
      : b_(b), numbers_(numbers), name_(std::move(name)), t_(t) {}

  Value operator()(const Constant&) { return number("value"); }

  Value operator()(const PolynomialCurve& curve) {
    const Value passed = fraction(b_, t_, curve.steps);
    Value left = sub(b_, b_.constant(DType::f64, 1.0), passed);
    if (!is_straight(curve)) left = b_.emit(ops::Pow{}, {left, number("power")});
    return between(left);
  }

  Value operator()(const CosineCurve& curve) {
    const Value passed = fraction(b_, t_, curve.steps);
    const Value wave = b_.emit(ops::Cos{}, {mul(b_, passed, std::numbers::pi)});
    return between(mul(b_, add(b_, wave, 1.0), 0.5));
  }

  Value operator()(const ExponentialCurve& curve) {
    Value exponent = div(b_, t_, static_cast<double>(curve.steps));
    if (curve.staircase) exponent = b_.emit(ops::Floor{}, {exponent});
    const Value power = b_.emit(ops::Pow{}, {number("rate"), exponent});
    return mul(b_, power, number("init"));
  }

 private:
  Value number(const char* of_curve) const { return numbers_[name_ + "/" + of_curve]; }
  Value between(Value share) { return add(b_, mul(b_, share, number("change")), number("end")); }

  Builder& b_;
  const Numbers& numbers_;
  const std::string name_;
  const Value t_;
};

double largest(const Constant& constant) { return constant.value; }
double largest(const PolynomialCurve& curve) { return std::max(curve.init, curve.end); }
double largest(const CosineCurve& curve) { return std::max(curve.init, curve.end); }
double largest(const ExponentialCurve& curve) {
  return curve.rate <= 1.0 ? curve.init : std::numeric_limits<double>::infinity();
}

std::optional<std::int64_t> length_of(const Constant&) { return 0; }
std::optional<std::int64_t> length_of(const PolynomialCurve& curve) { return curve.steps; }
std::optional<std::int64_t> length_of(const CosineCurve& curve) { return curve.steps; }
std::optional<std::int64_t> length_of(const ExponentialCurve&) { return std::nullopt; }

}  // namespace

Schedule make_schedule(const spec::LearningRate& rate, const StepsOf& steps_of, std::int64_t length, double factor) {
  Schedule schedule{rate.schedule ? spec::to_string(*rate.schedule) : "learning_rate", rate.place, {}, {}};
  Maker(steps_of, length, factor, schedule).add_rate(rate, 0);
  return schedule;
}

std::vector<Number> schedule_numbers(const Schedule& schedule) {
  std::vector<Number> all;
  if (schedule.began) all.push_back({began_name, static_cast<double>(*schedule.began), DType::f64});
  for (std::size_t i = 0; i < schedule.segments.size(); ++i) {
    for (Number& number : std::visit([&](const auto& curve) { return numbers_of(segment_name(i), curve); },
                                     schedule.segments[i].curve)) {
      all.push_back(std::move(number));
    }
  }
  return all;
}

Value rate_after(Builder& b, const Schedule& schedule, const Numbers& numbers, Value updates) {
  const Builder::Scope scope(b, {schedule.name, schedule.place});
  Value count = cast(b, updates, DType::f64);
  if (schedule.began) count = sub(b, count, numbers[began_name]);
  std::optional<Value> rate;
  for (std::size_t i = 0; i < schedule.segments.size(); ++i) {
    const Segment& segment = schedule.segments[i];
    const auto start = static_cast<double>(segment.start);
    const Value t = segment.start == 0 ? count : sub(b, count, start);
    const Value value = std::visit(CurveBuilder(b, numbers, segment_name(i), t), segment.curve);
    if (!rate) {
      rate = value;
      continue;
    }
    const Value before = b.emit(ops::Lt{}, {count, b.constant(DType::f64, start)});
    rate = model::select(b, before, *rate, value);
  }
  return *rate;
}

double rate_after(const Schedule& schedule, std::int64_t updates) {
  Program program;
  Builder b(program, all_ops());
  const Value count = b.input(Group::hyper, "updates", {DType::i64, {}, {}});
  const std::vector<Number> numbers = schedule_numbers(schedule);
  const std::vector<Value> values = model::declare_numbers(b, numbers);
  b.output("rate", rate_after(b, schedule, {numbers, values}, count));
  const auto bytes_of = [](const auto& value) {
    std::vector<std::byte> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return PerDevice{bytes};
  };
  std::map<std::string, PerDevice> inputs{{"updates", bytes_of(updates)}};
  for (const Number& number : numbers) inputs[number.name] = bytes_of(number.value);
  const Interpreted result = interpret(program, std::move(inputs));
  double rate = 0;
  std::memcpy(&rate, result.outputs.at("rate").front().data(), sizeof rate);
  return rate;
}

std::optional<std::int64_t> end_of(const Schedule& schedule) {
  const Segment& last = schedule.segments.back();
  std::optional<std::int64_t> end = std::visit([](const auto& curve) { return length_of(curve); }, last.curve);
  if (end) *end += last.start;
  return end;
}

double largest_rate(const Schedule& schedule) {
  double most = 0;
  for (const Segment& segment : schedule.segments) {
    most = std::max(most, std::visit([](const auto& curve) { return largest(curve); }, segment.curve));
  }
  return most;
}

}  // namespace pmaptrain::train
