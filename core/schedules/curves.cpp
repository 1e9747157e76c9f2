#include "core/schedules/curves.h"

#include <algorithm>
#include <limits>
#include <numbers>
#include <utility>

#include "core/equations/arithmetic.h"

namespace pmaptrain::schedules {

using namespace equations;

namespace {

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

constexpr const char* began_name = "learning_rate/began";

std::string segment_name(std::size_t index) { return "learning_rate/" + std::to_string(index); }

}  // namespace

Curve constant(double value) {
  return {{{"value", value, DType::f64}}, [](const CurveCall& call) { return call.number("value"); }, value, 0};
}

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

Curve cosine(double init, double end, std::int64_t steps) {
  const auto value = [steps](const CurveCall& call) {
    const Value passed = fraction(call, steps);
    const Value wave = call.b.emit(ops::Cos{}, {mul(call.b, passed, std::numbers::pi)});
    return between(call, mul(call.b, add(call.b, wave, 1.0), 0.5));
  };
  return {ends(init, end), value, std::max(init, end), steps};
}

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
    rate = select(b, before, *rate, value);
  }
  return *rate;
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

}  // namespace pmaptrain::schedules
