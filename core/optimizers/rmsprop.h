// RMSProp.
//
// v' = decay·v + (1-decay)·g²,  u = g / √(v' + eps), or g / (√v' + eps)
// with centered: v' - m'² in place of v', where m' is the average of g with the same decay
// with bias_correction: both averages divided by 1 - decay^step
// t' = rate·u + momentum·t,  w' = w - t', with nesterov w - (rate·u + momentum·t')
#pragma once

#include <cmath>

#include "core/optimizers/terms.h"

namespace pmaptrain::optimizers {

struct RmsProp {
  double decay = 0.9, eps = 1e-8, initial_scale = 0.0;
  bool eps_in_sqrt = true, centered = false;
  double momentum = 0.0;
  bool nesterov = false, bias_correction = false;

  static declare::Declaration<RmsProp> declaration() {
    return declare::kind<RmsProp>(
        {.path = "rmsprop",
         .meaning = "RMSProp: the gradient divided by the root of the moving average of its square.",
         .example = "rmsprop: {decay: 0.9, momentum: 0.9}"},
        decay_rate(&RmsProp::decay, "decay", "Exponential decay rate of the average of squares.", "decay: 0.99"),
        eps_of(&RmsProp::eps, "eps: 1.0e-8"),
        declare::field(&RmsProp::initial_scale, {.path = "initial_scale",
                                                 .high = declare::unbounded,
                                                 .meaning = "The initial value of the average of squares.",
                                                 .example = "initial_scale: 1.0"}),
        declare::field(&RmsProp::eps_in_sqrt,
                       {.path = "eps_in_sqrt",
                        .meaning = "Whether eps is added inside the square root; false, as in PyTorch: outside.",
                        .example = "eps_in_sqrt: false"}),
        declare::field(&RmsProp::centered, {.path = "centered",
                                            .meaning = "Whether to divide by the standard deviation of the gradient.",
                                            .example = "centered: true"}),
        momentum_of(&RmsProp::momentum), nesterov_of(&RmsProp::nesterov),
        declare::field(&RmsProp::bias_correction,
                       {.path = "bias_correction",
                        .meaning = "Whether to correct the averages for their start, as Adam does.",
                        .example = "bias_correction: true"}));
  }

  std::vector<SlotKind> slots() const {
    std::vector<SlotKind> kinds{{"rmsprop.nu", initial_scale}};
    if (centered) kinds.push_back({"rmsprop.mu"});
    if (momentum != 0.0) kinds.push_back({"rmsprop.trace"});
    return kinds;
  }
  std::vector<Number> numbers(DType dtype) const {
    std::vector<Number> all;
    add_decay(all, "decay", decay, dtype, bias_correction);
    all.push_back({"eps", eps, dtype});
    if (momentum != 0.0) all.push_back({"momentum", momentum, dtype});
    return all;
  }
  BiasCorrections corrections(Builder& b, const Numbers& numbers, Value step, DType dtype) const {
    BiasCorrections made;
    if (bias_correction) made.second_moment = optimizers::bias_correction(b, numbers["decay/log"], step, dtype);
    return made;
  }
  Value update(RuleCall& call) const {
    Builder& b = call.b;
    const auto corrected = [&](Value average) {
      return bias_correction ? div(b, average, call.corrections.second_moment) : average;
    };
    call.slots[0] = average_of_squares(call, "decay", call.slots[0], call.gradient);
    Value squares = corrected(call.slots[0]);
    if (centered) {
      call.slots[1] = moving_average(call, "decay", call.slots[1], call.gradient);
      const Value mean = corrected(call.slots[1]);
      squares = sub(b, squares, mul(b, mean, mean));
    }
    const Value added = call.numbers["eps"];
    const Value deviation =
        eps_in_sqrt ? square_root(b, add(b, squares, added)) : add(b, square_root(b, squares), added);
    const Value direction = div(b, call.gradient, deviation);
    if (momentum == 0.0) return descend(call, direction);
    // As in Optax, the trace accumulates steps, not directions.
    const Value step = mul(b, direction, call.learning_rate);
    const Value factor = call.numbers["momentum"];
    Value& trace = call.slots.back();
    trace = add(b, step, mul(b, trace, factor));
    if (!nesterov) return sub(b, call.parameter, trace);
    return sub(b, call.parameter, add(b, step, mul(b, trace, factor)));
  }
  // |w' - w| ≤ rate/√(1-decay)/(1-momentum). There is no bound with `centered`, where v' - m'² may be nothing but
  // rounding error.
  double largest_change(const Bounds& bounds) const {
    if (centered || !is_average_in_f32(decay) || eps < least_eps) return no_bound;
    return bounds.learning_rate / std::sqrt(1.0 - decay) / (1.0 - momentum);
  }
};

}  // namespace pmaptrain::optimizers
