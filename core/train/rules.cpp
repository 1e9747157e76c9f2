#include "core/train/rules.h"

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
using model::sub;

Value square_root(Builder& b, Value x) { return b.emit(ops::Sqrt{}, {x}); }

Value descend(const RuleCall& call, Value direction) {
  return sub(call.b, call.parameter, mul(call.b, direction, call.learning_rate));
}

// `value` + weight_decay·w
Value with_decay(const RuleCall& call, Value value) {
  if (call.weight_decay == 0.0) return value;
  return add(call.b, value, mul(call.b, call.parameter, call.weight_decay));
}

// 1 - decay^step as a scalar of `dtype`.
//
// As exp(step · log decay) in double: log decay is a constant rounded once, so the power's relative error is about
// step · |log decay| · 1e-16, small wherever the power is not already negligible, and 1 - power keeps some thirteen
// digits at the first step of decay 0.999, where f32 would keep five. It depends on the step count only, so a resumed
// run needs no further state.
Value bias_correction(Builder& b, double decay, Value step, DType dtype) {
  if (decay <= 0.0) return b.constant(dtype, 1.0);
  const Value power = b.emit(ops::Exp{}, {mul(b, cast(b, step, DType::f64), std::log(decay))});
  return cast(b, sub(b, b.constant(DType::f64, 1.0), power), dtype);
}

// decay·old + (1 - decay)·value
Value moving_average(Builder& b, double decay, Value old, Value value) {
  const Value past = mul(b, old, decay);
  return add(b, past, mul(b, value, 1.0 - decay));
}

Value average_of_squares(Builder& b, double decay, Value old, Value value) {
  return moving_average(b, decay, old, mul(b, value, value));
}

constexpr double unbounded = std::numeric_limits<double>::infinity();

// Up to here a change is less than half of the distance between neighbouring numbers at the end of f32's range.
constexpr double negligible = 1e30;

// Whether moving averages of equal values stay what these are: f32 may round the decay up to 1, and then they grow.
bool is_average(double decay) {
  const double rest = 1.0 - static_cast<double>(static_cast<float>(decay));
  return static_cast<double>(static_cast<float>(1.0 - decay)) / rest <= 1.001;
}

// Whether weight decay takes every parameter towards 0, through finite values only.
bool decays_towards_zero(const Bounds& bounds) {
  return bounds.weight_decay <= 1.0 && bounds.learning_rate * bounds.weight_decay <= 1.0;
}

// Squares of gradients below 1e-19 vanish in f32. A gradient is then divided by eps alone, which a smaller one than
// this would make a large step.
constexpr double least_eps = 1e-15;

// Of adam's direction, by Cauchy and Schwarz on the sums that m' and v' are.
double largest_direction(double b1, double b2, double eps) {
  if (eps < least_eps) return unbounded;
  if (!is_average(b2) || !(b1 * b1 < b2)) return unbounded;
  return 1.0 / std::sqrt((1.0 - b2) * (1.0 - b1 * b1 / b2));
}

// What a rule does, and the defaults of what few rules do.
struct Basic {
  template <class Rule>
  static Corrections correct(Builder&, const Rule&, Value, DType) {
    return {};
  }
  template <class Rule>
  static Value squares(Builder& b, const Rule&, Value largest) {
    return mul(b, largest, largest);
  }
};

template <class Rule>
struct Of;  // of each rule

template <>
struct Of<spec::Sgd> : Basic {
  static std::vector<SlotKind> slots(const spec::Sgd& sgd) {
    return sgd.momentum != 0.0 ? std::vector<SlotKind>{{"sgd.trace"}} : std::vector<SlotKind>{};
  }
  static Value update(const spec::Sgd& sgd, RuleCall& call) {
    Builder& b = call.b;
    const Value gradient = with_decay(call, call.gradient);
    if (call.slots.empty()) return descend(call, gradient);
    call.slots[0] = add(b, gradient, mul(b, call.slots[0], sgd.momentum));
    if (!sgd.nesterov) return descend(call, call.slots[0]);
    return descend(call, add(b, gradient, mul(b, call.slots[0], sgd.momentum)));
  }
  // A trace is a sum of gradients with weights that sum to 1/(1 - momentum) at most.
  static double largest_change(const spec::Sgd& sgd, const Bounds& bounds) {
    const double trace = bounds.gradient / (1.0 - sgd.momentum);
    const bool decays = bounds.weight_decay != 0.0, remembers = sgd.momentum != 0.0;
    if ((decays || remembers) && !(trace <= negligible)) return unbounded;
    if (decays && (remembers || !decays_towards_zero(bounds))) return unbounded;
    return bounds.learning_rate * trace;
  }
  static Value squares(Builder&, const spec::Sgd&, Value largest) { return largest; }
};

// Adam, AdamW and NAdam.
template <class Rule>
struct AdamLike : Basic {
  static std::vector<SlotKind> slots(const spec::OptimizerRule& rule) {
    return {{to_string(rule) + ".mu"}, {to_string(rule) + ".nu"}};
  }
  static Corrections correct(Builder& b, const Rule& rule, Value step, DType dtype) {
    Corrections made;
    made.first = bias_correction(b, rule.b1, step, dtype);
    made.second = bias_correction(b, rule.b2, step, dtype);
    return made;
  }
  // Advances the moments and returns the corrected direction.
  static Value direction(const Rule& rule, RuleCall& call) {
    Builder& b = call.b;
    call.slots[0] = moving_average(b, rule.b1, call.slots[0], call.gradient);
    call.slots[1] = average_of_squares(b, rule.b2, call.slots[1], call.gradient);
    const Value mean = Of<Rule>::mean(rule, call);
    const Value deviation = square_root(b, div(b, call.slots[1], call.corrections.second));
    return div(b, mean, add(b, deviation, rule.eps));
  }
  static Value mean(const Rule&, const RuleCall& call) { return div(call.b, call.slots[0], call.corrections.first); }
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

template <>
struct Of<spec::NAdam> : AdamLike<spec::NAdam> {
  static Corrections correct(Builder& b, const spec::NAdam& nadam, Value step, DType dtype) {
    Corrections made = AdamLike::correct(b, nadam, step, dtype);
    made.next_first = bias_correction(b, nadam.b1, add(b, step, 1.0), dtype);
    return made;
  }
  static Value mean(const spec::NAdam& nadam, const RuleCall& call) {
    const Value ahead = div(call.b, call.slots[0], call.corrections.next_first);
    const Value now = div(call.b, call.gradient, call.corrections.first);
    return moving_average(call.b, nadam.b1, ahead, now);
  }
  // Beside the moment stands the gradient itself, which is at most 1/√(1-b2) times the root of its average of squares.
  static double largest_change(const spec::NAdam& nadam, const Bounds& bounds) {
    return 2.0 * AdamLike::largest_change(nadam, bounds);
  }
};

template <>
struct Of<spec::RmsProp> : Basic {
  static std::vector<SlotKind> slots(const spec::RmsProp& rule) {
    std::vector<SlotKind> kinds{{"rmsprop.nu", rule.initial_scale}};
    if (rule.centered) kinds.push_back({"rmsprop.mu"});
    if (rule.momentum != 0.0) kinds.push_back({"rmsprop.trace"});
    return kinds;
  }
  static Corrections correct(Builder& b, const spec::RmsProp& rule, Value step, DType dtype) {
    Corrections made;
    if (rule.bias_correction) made.second = bias_correction(b, rule.decay, step, dtype);
    return made;
  }
  static Value update(const spec::RmsProp& rule, RuleCall& call) {
    Builder& b = call.b;
    const auto corrected = [&](Value average) {
      return rule.bias_correction ? div(b, average, call.corrections.second) : average;
    };
    call.slots[0] = average_of_squares(b, rule.decay, call.slots[0], call.gradient);
    Value squares = corrected(call.slots[0]);
    if (rule.centered) {
      call.slots[1] = moving_average(b, rule.decay, call.slots[1], call.gradient);
      const Value mean = corrected(call.slots[1]);
      squares = sub(b, squares, mul(b, mean, mean));
    }
    const Value deviation =
        rule.eps_in_sqrt ? square_root(b, add(b, squares, rule.eps)) : add(b, square_root(b, squares), rule.eps);
    const Value direction = div(b, call.gradient, deviation);
    if (rule.momentum == 0.0) return descend(call, direction);
    // As Optax has it, the trace is of steps, not of directions.
    const Value step = mul(b, direction, call.learning_rate);
    Value& trace = call.slots.back();
    trace = add(b, step, mul(b, trace, rule.momentum));
    if (!rule.nesterov) return sub(b, call.parameter, trace);
    return sub(b, call.parameter, add(b, step, mul(b, trace, rule.momentum)));
  }
  // What is left of the squares after the mean is taken off may be rounding error.
  static double largest_change(const spec::RmsProp& rule, const Bounds& bounds) {
    if (rule.centered || !is_average(rule.decay) || rule.eps < least_eps) return unbounded;
    return bounds.learning_rate / std::sqrt(1.0 - rule.decay) / (1.0 - rule.momentum);
  }
};

template <>
struct Of<spec::AdaGrad> : Basic {
  static std::vector<SlotKind> slots(const spec::AdaGrad& rule) {
    return {{"adagrad.sum_of_squares", rule.initial_accumulator_value}};
  }
  static Value update(const spec::AdaGrad& rule, RuleCall& call) {
    Builder& b = call.b;
    call.slots[0] = add(b, mul(b, call.gradient, call.gradient), call.slots[0]);
    // Where all gradients were 0 so far, and the first sum too, the quotient is 0 by its dividend.
    return descend(call, div(b, call.gradient, square_root(b, add(b, call.slots[0], rule.eps))));
  }
  static double largest_change(const spec::AdaGrad&, const Bounds&) { return unbounded; }  // the sum grows
};

template <>
struct Of<spec::Lion> : Basic {
  static std::vector<SlotKind> slots(const spec::Lion&) { return {{"lion.mu"}}; }
  static Value update(const spec::Lion& rule, RuleCall& call) {
    Builder& b = call.b;
    const Value average = moving_average(b, rule.b1, call.slots[0], call.gradient);
    const Value direction = b.emit(ops::Sign{}, {average});
    call.slots[0] = moving_average(b, rule.b2, call.slots[0], call.gradient);
    return descend(call, with_decay(call, direction));
  }
  static double largest_change(const spec::Lion& rule, const Bounds& bounds) {
    return is_average(rule.b2) && decays_towards_zero(bounds) ? bounds.learning_rate : unbounded;
  }
  static Value squares(Builder&, const spec::Lion&, Value largest) { return largest; }
};

}  // namespace

std::vector<SlotKind> slot_kinds(const spec::OptimizerRule& rule) {
  return std::visit([]<class Rule>(const Rule& one) { return Of<Rule>::slots(one); }, rule);
}

std::optional<double> weight_decay_of(const spec::OptimizerRule& rule) {
  return std::visit(
      [](const auto& one) -> std::optional<double> {
        if constexpr (requires { one.weight_decay; }) return one.weight_decay;
        return std::nullopt;
      },
      rule);
}

Corrections corrections(Builder& b, const spec::OptimizerRule& rule, Value step, DType dtype) {
  return std::visit([&]<class Rule>(const Rule& one) { return Of<Rule>::correct(b, one, step, dtype); }, rule);
}

Value updated_parameter(const spec::OptimizerRule& rule, RuleCall& call) {
  return std::visit([&]<class Rule>(const Rule& one) { return Of<Rule>::update(one, call); }, rule);
}

double largest_change(const spec::OptimizerRule& rule, const Bounds& bounds) {
  return std::visit([&]<class Rule>(const Rule& one) { return Of<Rule>::largest_change(one, bounds); }, rule);
}

Value squares_bound(Builder& b, const spec::OptimizerRule& rule, Value largest_gradient) {
  return std::visit([&]<class Rule>(const Rule& one) { return Of<Rule>::squares(b, one, largest_gradient); }, rule);
}

}  // namespace pmaptrain::train
