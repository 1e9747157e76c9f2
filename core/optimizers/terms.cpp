#include "core/optimizers/terms.h"

#include <cmath>

namespace pmaptrain::optimizers {

Value squared(Builder& b, Value x) { return mul(b, x, x); }

Value square_root(Builder& b, Value x) { return b.emit(ops::Sqrt{}, {x}); }

Value descend(const RuleCall& call, Value direction) {
  return sub(call.b, call.parameter, mul(call.b, direction, call.learning_rate));
}

Value with_decay(const RuleCall& call, Value value) {
  if (!call.weight_decay) return value;
  return add(call.b, value, mul(call.b, call.parameter, *call.weight_decay));
}

void add_decay(std::vector<Number>& out, const std::string& name, double decay, DType dtype, bool corrects) {
  out.push_back({name, decay, dtype});
  out.push_back({name + "/rest", 1.0 - decay, dtype});
  if (corrects) out.push_back({name + "/log", std::log(decay), DType::f64});
}

Value moving_average(const RuleCall& call, const std::string& decay, Value old, Value value) {
  const Value past = mul(call.b, old, call.numbers[decay]);
  return add(call.b, past, mul(call.b, value, call.numbers[decay + "/rest"]));
}

Value average_of_squares(const RuleCall& call, const std::string& decay, Value old, Value value) {
  return moving_average(call, decay, old, squared(call.b, value));
}

// The power is exp(step · log decay) in double. log decay is rounded once, so the power's relative error is about step
// · |log decay| · 1e-16, which is small unless the power is negligible. 1 - power keeps some thirteen digits at the
// first step with decay 0.999, where f32 would keep five. It depends only on the step count, so a resumed run needs no
// further state. A decay of 0 has the logarithm -∞ and the power 0.
Value bias_correction(Builder& b, Value log_decay, Value step, DType dtype) {
  const Value power = b.emit(ops::Exp{}, {mul(b, cast(b, step, DType::f64), log_decay)});
  return cast(b, sub(b, b.constant(DType::f64, 1.0), power), dtype);
}

bool is_average_in_f32(double decay) {
  const double rest = 1.0 - static_cast<double>(static_cast<float>(decay));
  return static_cast<double>(static_cast<float>(1.0 - decay)) / rest <= 1.001;
}

bool decays_towards_zero(const Bounds& bounds) {
  return bounds.weight_decay <= 1.0 && bounds.learning_rate * bounds.weight_decay <= 1.0;
}

double largest_direction(double b1, double b2, double eps) {
  if (eps < least_eps) return no_bound;
  if (!is_average_in_f32(b2) || !(b1 * b1 < b2)) return no_bound;
  return 1.0 / std::sqrt((1.0 - b2) * (1.0 - b1 * b1 / b2));
}

}  // namespace pmaptrain::optimizers
