#include "core/step/rules.h"

#include <cmath>
#include <limits>
#include <variant>

#include "core/model/arithmetic.h"

namespace pmaptrain::train {
namespace {

using model::add;
using model::cast;
using model::div;
using model::mul;
using model::Number;
using model::Numbers;
using model::sub;

Value square_root(Builder& b, Value x) { return b.emit(ops::Sqrt{}, {x}); }

// w - learning_rate·direction
Value descend(const RuleCall& call, Value direction) {
  return sub(call.b, call.parameter, mul(call.b, direction, call.learning_rate));
}

// `value` + weight_decay·w
Value with_decay(const RuleCall& call, Value value) {
  if (!call.weight_decay) return value;
  return add(call.b, value, mul(call.b, call.parameter, *call.weight_decay));
}

// Adds the numbers that a moving average with this decay reads and, if `corrects`, those of its bias correction.
void add_decay(std::vector<Number>& out, const std::string& name, double decay, DType dtype, bool corrects = false) {
  out.push_back({name, decay, dtype});
  out.push_back({name + "/rest", 1.0 - decay, dtype});
  if (corrects) out.push_back({name + "/log", std::log(decay), DType::f64});
}

// 1 - decay^step as a scalar of `dtype`, from log decay.
//
// The power is exp(step · log decay) in double. log decay is rounded once, so the power's relative error is about step
// · |log decay| · 1e-16, which is small unless the power is negligible. 1 - power keeps some thirteen digits at the
// first step with decay 0.999, where f32 would keep five. It depends only on the step count, so a resumed run needs no
// further state. A decay of 0 has the logarithm -∞ and the power 0.
Value bias_correction(Builder& b, Value log_decay, Value step, DType dtype) {
  const Value power = b.emit(ops::Exp{}, {mul(b, cast(b, step, DType::f64), log_decay)});
  return cast(b, sub(b, b.constant(DType::f64, 1.0), power), dtype);
}

// decay·old + (1 - decay)·value
Value moving_average(const RuleCall& call, const std::string& decay, Value old, Value value) {
  const Value past = mul(call.b, old, call.numbers[decay]);
  return add(call.b, past, mul(call.b, value, call.numbers[decay + "/rest"]));
}

Value average_of_squares(const RuleCall& call, const std::string& decay, Value old, Value value) {
  return moving_average(call, decay, old, mul(call.b, value, value));
}

constexpr double unbounded = std::numeric_limits<double>::infinity();

// A change up to this size is less than half of the distance between neighbouring numbers at the end of f32's range.
constexpr double negligible = 1e30;

// Whether the factors of a moving average, decay and 1 - decay, still add up to about 1 when both are rounded to f32.
// If f32 rounds the decay up to 1, they do not, and the average of equal values grows.
bool is_average_in_f32(double decay) {
  const double rest = 1.0 - static_cast<double>(static_cast<float>(decay));
  return static_cast<double>(static_cast<float>(1.0 - decay)) / rest <= 1.001;
}

// Whether weight decay moves every parameter towards 0, through finite values only.
bool decays_towards_zero(const Bounds& bounds) {
  return bounds.weight_decay <= 1.0 && bounds.learning_rate * bounds.weight_decay <= 1.0;
}

// Squares of gradients below 1e-19 vanish in f32. The gradient is then divided by eps alone, so with a smaller eps than
// this the step would be large.
constexpr double least_eps = 1e-15;

// A bound for the elements of adam's direction: 1/√((1-b2)·(1-b1²/b2)) for b1² < b2, by Cauchy and Schwarz on the sums
// m' and v', unless eps is so small that squares which vanish matter.
double largest_direction(double b1, double b2, double eps) {
  if (eps < least_eps) return unbounded;
  if (!is_average_in_f32(b2) || !(b1 * b1 < b2)) return unbounded;
  return 1.0 / std::sqrt((1.0 - b2) * (1.0 - b1 * b1 / b2));
}

// Defaults of a rule's members, for rules that do not need their own.
struct Basic {
  template <class Rule>
  static bool keeps_without_gradient(const Rule&) {
    return false;
  }
  template <class Rule>
  static BiasCorrections correct(Builder&, const Rule&, const Numbers&, Value, DType) {
    return {};
  }
  template <class Rule>
  static Value slot_bound(Builder& b, const Rule&, Value largest) {
    return mul(b, largest, largest);
  }
};

// The struct of each rule, with everything that is particular to it. w is the parameter, g its gradient.
template <class Rule>
struct Of {
  static_assert(sizeof(Rule) == 0, "this rule has no struct Of in core/step/rules.cpp");
};

// g' = g + weight_decay·w,  t' = g' + momentum·t
// w' = w - rate·t', with nesterov w - rate·(g' + momentum·t')
template <>
struct Of<spec::Sgd> : Basic {
  static bool keeps_without_gradient(const spec::Sgd& sgd) { return sgd.momentum == 0.0; }
  static std::vector<SlotKind> slots(const spec::Sgd& sgd) {
    return sgd.momentum != 0.0 ? std::vector<SlotKind>{{"sgd.trace"}} : std::vector<SlotKind>{};
  }
  static std::vector<Number> numbers(const spec::Sgd& sgd, DType dtype) {
    if (sgd.momentum == 0.0) return {};
    return {{"momentum", sgd.momentum, dtype}};
  }
  static Value update(const spec::Sgd& sgd, RuleCall& call) {
    Builder& b = call.b;
    const Value gradient = with_decay(call, call.gradient);
    if (call.slots.empty()) return descend(call, gradient);
    const Value momentum = call.numbers["momentum"];
    call.slots[0] = add(b, gradient, mul(b, call.slots[0], momentum));
    if (!sgd.nesterov) return descend(call, call.slots[0]);
    return descend(call, add(b, gradient, mul(b, call.slots[0], momentum)));
  }
  // |w' - w| ≤ rate·|t'|. The trace t' is a weighted sum of gradients, whose weights sum to at most 1/(1 - momentum).
  // It may overflow unless the gradient is clipped. Without momentum and weight decay t' is g, so the bound always
  // holds.
  static double largest_change(const spec::Sgd& sgd, const Bounds& bounds) {
    const double trace = bounds.gradient / (1.0 - sgd.momentum);
    const bool decays = bounds.weight_decay != 0.0, remembers = sgd.momentum != 0.0;
    if ((decays || remembers) && !(trace <= negligible)) return unbounded;
    if (decays && (remembers || !decays_towards_zero(bounds))) return unbounded;
    return bounds.learning_rate * trace;
  }
  static Value slot_bound(Builder&, const spec::Sgd&, Value largest) { return largest; }
};

// Adam, AdamW and NAdam.
//
// m' = b1·m + (1-b1)·g,  v' = b2·v + (1-b2)·g²
// u = (m'/(1-b1^step)) / (√(v'/(1-b2^step)) + eps)
// w' = w - rate·(u + weight_decay·w)
template <class Rule>
struct AdamLike : Basic {
  static std::vector<SlotKind> slots(const spec::OptimizerRule& rule) {
    return {{to_string(rule) + ".mu"}, {to_string(rule) + ".nu"}};
  }
  static std::vector<Number> numbers(const Rule& rule, DType dtype) {
    std::vector<Number> all;
    add_decay(all, "b1", rule.b1, dtype, true);
    add_decay(all, "b2", rule.b2, dtype, true);
    all.push_back({"eps", rule.eps, dtype});
    return all;
  }
  static BiasCorrections correct(Builder& b, const Rule&, const Numbers& numbers, Value step, DType dtype) {
    BiasCorrections made;
    made.first_moment = bias_correction(b, numbers["b1/log"], step, dtype);
    made.second_moment = bias_correction(b, numbers["b2/log"], step, dtype);
    return made;
  }
  // Updates both moments and returns u.
  static Value direction(const Rule& rule, RuleCall& call) {
    Builder& b = call.b;
    call.slots[0] = moving_average(call, "b1", call.slots[0], call.gradient);
    call.slots[1] = average_of_squares(call, "b2", call.slots[1], call.gradient);
    const Value mean = Of<Rule>::mean(rule, call);
    const Value deviation = square_root(b, div(b, call.slots[1], call.corrections.second_moment));
    return div(b, mean, add(b, deviation, call.numbers["eps"]));
  }
  static Value mean(const Rule&, const RuleCall& call) {
    return div(call.b, call.slots[0], call.corrections.first_moment);
  }
  static Value update(const Rule& rule, RuleCall& call) {
    return descend(call, with_decay(call, direction(rule, call)));
  }
  static double largest_change(const Rule& rule, const Bounds& bounds) {
    if (!decays_towards_zero(bounds)) return unbounded;
    return bounds.learning_rate * largest_direction(rule.b1, rule.b2, rule.eps);
  }
};
template <>
struct Of<spec::Adam> : AdamLike<spec::Adam> {};
template <>
struct Of<spec::AdamW> : AdamLike<spec::AdamW> {};

// Adam with b1·m'/(1-b1^(step+1)) + (1-b1)·g/(1-b1^step) in place of m'/(1-b1^step).
template <>
struct Of<spec::NAdam> : AdamLike<spec::NAdam> {
  static BiasCorrections correct(Builder& b, const spec::NAdam& nadam, const Numbers& numbers, Value step,
                                 DType dtype) {
    BiasCorrections made = AdamLike::correct(b, nadam, numbers, step, dtype);
    made.next_first_moment = bias_correction(b, numbers["b1/log"], add(b, step, 1.0), dtype);
    return made;
  }
  static Value mean(const spec::NAdam&, const RuleCall& call) {
    const Value ahead = div(call.b, call.slots[0], call.corrections.next_first_moment);
    const Value now = div(call.b, call.gradient, call.corrections.first_moment);
    return moving_average(call, "b1", ahead, now);
  }
  // To adam's direction the rule adds one of g itself, and |g| is at most 1/√(1-b2) times the root of the mean square.
  static double largest_change(const spec::NAdam& nadam, const Bounds& bounds) {
    return 2.0 * AdamLike::largest_change(nadam, bounds);
  }
};

// v' = decay·v + (1-decay)·g²,  u = g / √(v' + eps), or g / (√v' + eps)
// with centered: v' - m'² in place of v', where m' is the average of g with the same decay
// with bias_correction: both averages divided by 1 - decay^step
// t' = rate·u + momentum·t,  w' = w - t', with nesterov w - (rate·u + momentum·t')
template <>
struct Of<spec::RmsProp> : Basic {
  static std::vector<SlotKind> slots(const spec::RmsProp& rule) {
    std::vector<SlotKind> kinds{{"rmsprop.nu", rule.initial_scale}};
    if (rule.centered) kinds.push_back({"rmsprop.mu"});
    if (rule.momentum != 0.0) kinds.push_back({"rmsprop.trace"});
    return kinds;
  }
  static std::vector<Number> numbers(const spec::RmsProp& rule, DType dtype) {
    std::vector<Number> all;
    add_decay(all, "decay", rule.decay, dtype, rule.bias_correction);
    all.push_back({"eps", rule.eps, dtype});
    if (rule.momentum != 0.0) all.push_back({"momentum", rule.momentum, dtype});
    return all;
  }
  static BiasCorrections correct(Builder& b, const spec::RmsProp& rule, const Numbers& numbers, Value step,
                                 DType dtype) {
    BiasCorrections made;
    if (rule.bias_correction) made.second_moment = bias_correction(b, numbers["decay/log"], step, dtype);
    return made;
  }
  static Value update(const spec::RmsProp& rule, RuleCall& call) {
    Builder& b = call.b;
    const auto corrected = [&](Value average) {
      return rule.bias_correction ? div(b, average, call.corrections.second_moment) : average;
    };
    call.slots[0] = average_of_squares(call, "decay", call.slots[0], call.gradient);
    Value squares = corrected(call.slots[0]);
    if (rule.centered) {
      call.slots[1] = moving_average(call, "decay", call.slots[1], call.gradient);
      const Value mean = corrected(call.slots[1]);
      squares = sub(b, squares, mul(b, mean, mean));
    }
    const Value eps = call.numbers["eps"];
    const Value deviation =
        rule.eps_in_sqrt ? square_root(b, add(b, squares, eps)) : add(b, square_root(b, squares), eps);
    const Value direction = div(b, call.gradient, deviation);
    if (rule.momentum == 0.0) return descend(call, direction);
    // As in Optax, the trace accumulates steps, not directions.
    const Value step = mul(b, direction, call.learning_rate);
    const Value momentum = call.numbers["momentum"];
    Value& trace = call.slots.back();
    trace = add(b, step, mul(b, trace, momentum));
    if (!rule.nesterov) return sub(b, call.parameter, trace);
    return sub(b, call.parameter, add(b, step, mul(b, trace, momentum)));
  }
  // |w' - w| ≤ rate/√(1-decay)/(1-momentum). There is no bound with `centered`, where v' - m'² may be nothing but
  // rounding error.
  static double largest_change(const spec::RmsProp& rule, const Bounds& bounds) {
    if (rule.centered || !is_average_in_f32(rule.decay) || rule.eps < least_eps) return unbounded;
    return bounds.learning_rate / std::sqrt(1.0 - rule.decay) / (1.0 - rule.momentum);
  }
};

// v' = v + g²,  w' = w - rate·g/√(v' + eps)
template <>
struct Of<spec::AdaGrad> : Basic {
  // With eps of 0, a sum of squares of 0 would make the quotient NaN.
  static bool keeps_without_gradient(const spec::AdaGrad& rule) { return static_cast<float>(rule.eps) > 0.0F; }
  static std::vector<SlotKind> slots(const spec::AdaGrad& rule) {
    return {{"adagrad.sum_of_squares", rule.initial_accumulator_value}};
  }
  static std::vector<Number> numbers(const spec::AdaGrad& rule, DType dtype) { return {{"eps", rule.eps, dtype}}; }
  static Value update(const spec::AdaGrad&, RuleCall& call) {
    Builder& b = call.b;
    call.slots[0] = add(b, mul(b, call.gradient, call.gradient), call.slots[0]);
    // As long as all gradients and the initial sum are 0, the quotient is 0, because the dividend is 0.
    return descend(call, div(b, call.gradient, square_root(b, add(b, call.slots[0], call.numbers["eps"]))));
  }
  static double largest_change(const spec::AdaGrad&, const Bounds&) { return unbounded; }  // the sum grows
};

// m' = b2·m + (1-b2)·g
// w' = w - rate·(sign(b1·m + (1-b1)·g) + weight_decay·w)
template <>
struct Of<spec::Lion> : Basic {
  static std::vector<SlotKind> slots(const spec::Lion&) { return {{"lion.mu"}}; }
  static std::vector<Number> numbers(const spec::Lion& rule, DType dtype) {
    std::vector<Number> all;
    add_decay(all, "b1", rule.b1, dtype);
    add_decay(all, "b2", rule.b2, dtype);
    return all;
  }
  static Value update(const spec::Lion&, RuleCall& call) {
    Builder& b = call.b;
    const Value average = moving_average(call, "b1", call.slots[0], call.gradient);
    const Value direction = b.emit(ops::Sign{}, {average});
    call.slots[0] = moving_average(call, "b2", call.slots[0], call.gradient);
    return descend(call, with_decay(call, direction));
  }
  static double largest_change(const spec::Lion& rule, const Bounds& bounds) {
    return is_average_in_f32(rule.b2) && decays_towards_zero(bounds) ? bounds.learning_rate : unbounded;
  }
  static Value slot_bound(Builder&, const spec::Lion&, Value largest) { return largest; }
};

}  // namespace

std::vector<SlotKind> slot_kinds(const spec::OptimizerRule& rule) {
  return std::visit([]<class Rule>(const Rule& one) { return Of<Rule>::slots(one); }, rule);
}

bool keeps_without_gradient(const spec::OptimizerRule& rule) {
  return std::visit([]<class Rule>(const Rule& one) { return Of<Rule>::keeps_without_gradient(one); }, rule);
}

std::optional<double> weight_decay_of(const spec::OptimizerRule& rule) {
  return std::visit(
      [](const auto& one) -> std::optional<double> {
        if constexpr (requires { one.weight_decay; }) return one.weight_decay;
        return std::nullopt;
      },
      rule);
}

std::vector<Number> rule_numbers(const spec::OptimizerRule& rule, DType dtype) {
  return std::visit([&]<class Rule>(const Rule& one) { return Of<Rule>::numbers(one, dtype); }, rule);
}

BiasCorrections bias_corrections(Builder& b, const spec::OptimizerRule& rule, const Numbers& numbers, Value step,
                                 DType dtype) {
  return std::visit([&]<class Rule>(const Rule& one) { return Of<Rule>::correct(b, one, numbers, step, dtype); }, rule);
}

Value updated_parameter(const spec::OptimizerRule& rule, RuleCall& call) {
  return std::visit([&]<class Rule>(const Rule& one) { return Of<Rule>::update(one, call); }, rule);
}

double largest_change(const spec::OptimizerRule& rule, const Bounds& bounds) {
  return std::visit([&]<class Rule>(const Rule& one) { return Of<Rule>::largest_change(one, bounds); }, rule);
}

Value slot_bound(Builder& b, const spec::OptimizerRule& rule, Value largest_gradient) {
  return std::visit([&]<class Rule>(const Rule& one) { return Of<Rule>::slot_bound(b, one, largest_gradient); }, rule);
}

}  // namespace pmaptrain::train
