#include "core/train/optimizer.h"

#include <cassert>
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

// One parameter's part of an update, shared scalars computed once.
struct Rates {
  Value learning_rate;
  Value bias1, bias2;  // 1 - b^step, for the rules that correct
};

Value descend(Builder& b, Value parameter, Value direction, Value learning_rate) {
  return sub(b, parameter, mul(b, direction, learning_rate));
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

// Advances the moments in `slots` and returns the corrected direction.
Value adam_direction(Builder& b, double b1, double b2, double eps, Value gradient, std::span<Value> slots,
                     const Rates& rates) {
  slots[0] = moving_average(b, b1, slots[0], gradient);
  slots[1] = moving_average(b, b2, slots[1], mul(b, gradient, gradient));
  const Value mean = div(b, slots[0], rates.bias1);
  const Value deviation = b.emit(ops::Sqrt{}, {div(b, slots[1], rates.bias2)});
  return div(b, mean, add(b, deviation, eps));
}

// The rules. update() advances one parameter's slots in place and returns the new parameter.
struct RuleTraits {
  static std::vector<std::string> slots(const spec::Sgd& sgd) {
    return sgd.momentum != 0.0 ? std::vector<std::string>{"sgd.trace"} : std::vector<std::string>{};
  }
  static std::vector<std::string> slots(const spec::Adam&) { return {"adam.mu", "adam.nu"}; }
  static std::vector<std::string> slots(const spec::AdamW&) { return {"adamw.mu", "adamw.nu"}; }

  static void prepare(Builder&, const spec::Sgd&, Value, DType, Rates&) {}
  template <class Adaptive>
  static void prepare(Builder& b, const Adaptive& rule, Value step, DType dtype, Rates& rates) {
    rates.bias1 = bias_correction(b, rule.b1, step, dtype);
    rates.bias2 = bias_correction(b, rule.b2, step, dtype);
  }

  static constexpr double unbounded = std::numeric_limits<double>::infinity();

  static double largest_change(const spec::Sgd& sgd, double rate) {
    return sgd.momentum == 0 ? rate * static_cast<double>(std::numeric_limits<float>::max()) : unbounded;
  }
  static double largest_change(const spec::Adam& adam, double rate) { return largest_change(adam.b1, adam.b2, rate); }
  static double largest_change(const spec::AdamW& adamw, double rate) {
    return rate * adamw.weight_decay <= 1.0 ? largest_change(adamw.b1, adamw.b2, rate) : unbounded;
  }
  static double largest_change(double b1, double b2, double rate) {
    // What equal squares come to after many steps, as a multiple of one: f32 may round b2 up to 1, and then it grows.
    const double weights =
        static_cast<double>(static_cast<float>(1.0 - b2)) / (1.0 - static_cast<double>(static_cast<float>(b2)));
    if (!(weights <= 1.001)) return unbounded;
    return b1 * b1 < b2 ? rate / std::sqrt((1.0 - b2) * (1.0 - b1 * b1 / b2)) : unbounded;
  }

  static Value squares_bound(Builder&, const spec::Sgd&, Value largest) { return largest; }
  template <class Adaptive>
  static Value squares_bound(Builder& b, const Adaptive&, Value largest) {
    return mul(b, largest, largest);
  }

  static Value update(Builder& b, const spec::Sgd& sgd, Value w, Value g, std::span<Value> slots, const Rates& rates) {
    if (slots.empty()) return descend(b, w, g, rates.learning_rate);
    slots[0] = add(b, g, mul(b, slots[0], sgd.momentum));
    const Value direction = sgd.nesterov ? add(b, g, mul(b, slots[0], sgd.momentum)) : slots[0];
    return descend(b, w, direction, rates.learning_rate);
  }
  static Value update(Builder& b, const spec::Adam& adam, Value w, Value g, std::span<Value> slots,
                      const Rates& rates) {
    return descend(b, w, adam_direction(b, adam.b1, adam.b2, adam.eps, g, slots, rates), rates.learning_rate);
  }
  static Value update(Builder& b, const spec::AdamW& adamw, Value w, Value g, std::span<Value> slots,
                      const Rates& rates) {
    const Value direction = adam_direction(b, adamw.b1, adamw.b2, adamw.eps, g, slots, rates);
    return descend(b, w, add(b, direction, mul(b, w, adamw.weight_decay)), rates.learning_rate);
  }
};

}  // namespace

std::string rule_name(const spec::OptimizerSpec& optimizer) { return spec::to_string(optimizer.rule); }

std::vector<std::string> slot_kinds(const spec::OptimizerSpec& optimizer) {
  return std::visit([](const auto& rule) { return RuleTraits::slots(rule); }, optimizer.rule);
}

Update optimizer_update(Builder& b, const spec::OptimizerSpec& optimizer, std::span<const Value> parameters,
                        std::span<const Value> gradients, const std::vector<std::vector<Value>>& slots, Value step,
                        Value learning_rate) {
  assert(gradients.size() == parameters.size() && slots.size() == slot_kinds(optimizer).size());
  Update update{{}, slots};
  if (parameters.empty()) return update;
  const DType dtype = b.type(parameters.front()).dtype;
  std::visit(
      [&](const auto& rule) {
        Rates rates{learning_rate, {}, {}};
        RuleTraits::prepare(b, rule, step, dtype, rates);
        for (std::size_t i = 0; i < parameters.size(); ++i) {
          std::vector<Value> own;
          own.reserve(slots.size());
          for (const std::vector<Value>& kind : slots) own.push_back(kind[i]);
          update.parameters.push_back(RuleTraits::update(b, rule, parameters[i], gradients[i], own, rates));
          for (std::size_t k = 0; k < own.size(); ++k) update.slots[k][i] = own[k];
        }
      },
      optimizer.rule);
  return update;
}

double scaled_learning_rate(const spec::OptimizerSpec& optimizer, std::int64_t global_batch) {
  if (!optimizer.base_batch_size) return optimizer.learning_rate;
  return optimizer.learning_rate * static_cast<double>(global_batch) / static_cast<double>(*optimizer.base_batch_size);
}

bool may_overflow(const spec::OptimizerSpec& optimizer, std::int64_t global_batch) {
  const double rate = scaled_learning_rate(optimizer, global_batch);
  const double change =
      std::visit([&](const auto& rule) { return RuleTraits::largest_change(rule, rate); }, optimizer.rule);
  return !(change <= 1e30);  // also of no number
}

Value squares_bound(Builder& b, const spec::OptimizerSpec& optimizer, Value largest_gradient) {
  return std::visit([&](const auto& rule) { return RuleTraits::squares_bound(b, rule, largest_gradient); },
                    optimizer.rule);
}

}  // namespace pmaptrain::train
