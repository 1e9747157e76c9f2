// What adam, adamw and nadam have in common.
//
// m' = b1·m + (1-b1)·g,  v' = b2·v + (1-b2)·g²
// u = (m'/(1-b1^step)) / (√(v'/(1-b2^step)) + eps)
// w' = w - rate·(u + weight_decay·w)
#pragma once

#include "core/optimizers/terms.h"

namespace pmaptrain::optimizers {

struct Moments {
  double b1, b2, eps;

  static std::vector<SlotKind> slots(const std::string& rule) { return {{rule + ".mu"}, {rule + ".nu"}}; }

  std::vector<Number> numbers(DType dtype) const {
    std::vector<Number> all;
    add_decay(all, "b1", b1, dtype, true);
    add_decay(all, "b2", b2, dtype, true);
    all.push_back({"eps", eps, dtype});
    return all;
  }
  static BiasCorrections corrections(Builder& b, const Numbers& numbers, Value step, DType dtype) {
    BiasCorrections made;
    made.first_moment = bias_correction(b, numbers["b1/log"], step, dtype);
    made.second_moment = bias_correction(b, numbers["b2/log"], step, dtype);
    return made;
  }
  // Replaces both moments.
  static void move(RuleCall& call) {
    call.slots[0] = moving_average(call, "b1", call.slots[0], call.gradient);
    call.slots[1] = average_of_squares(call, "b2", call.slots[1], call.gradient);
  }
  static Value mean(const RuleCall& call) { return div(call.b, call.slots[0], call.corrections.first_moment); }
  // u, for this mean.
  static Value direction(const RuleCall& call, Value mean) {
    Builder& b = call.b;
    const Value deviation = square_root(b, div(b, call.slots[1], call.corrections.second_moment));
    return div(b, mean, add(b, deviation, call.numbers["eps"]));
  }
  static Value update(RuleCall& call) {
    move(call);
    return descend(call, with_decay(call, direction(call, mean(call))));
  }
  double largest_change(const Bounds& bounds) const {
    if (!decays_towards_zero(bounds)) return no_bound;
    return bounds.learning_rate * largest_direction(b1, b2, eps);
  }
};

}  // namespace pmaptrain::optimizers
