// Adam with Nesterov momentum: b1·m'/(1-b1^(step+1)) + (1-b1)·g/(1-b1^step) in place of adam's m'/(1-b1^step).
#pragma once

#include "core/optimizers/moments.h"

namespace pmaptrain::optimizers {

struct NAdam {
  double b1 = 0.9, b2 = 0.999, eps = 1e-8;

  static declare::Declaration<NAdam> declaration() {
    return declare::kind<NAdam>({.path = "nadam",
                                 .meaning = "Adam with Nesterov momentum.",
                                 .example = "nadam: {b1: 0.9, b2: 0.999, eps: 1.0e-8}"},
                                b1_of(&NAdam::b1), b2_of(&NAdam::b2), eps_of(&NAdam::eps, "eps: 1.0e-8"));
  }

  std::vector<SlotKind> slots() const { return Moments::slots("nadam"); }
  std::vector<Number> numbers(DType dtype) const { return moments().numbers(dtype); }
  BiasCorrections corrections(Builder& b, const Numbers& numbers, Value step, DType dtype) const {
    BiasCorrections made = Moments::corrections(b, numbers, step, dtype);
    made.next_first_moment = bias_correction(b, numbers["b1/log"], add(b, step, 1.0), dtype);
    return made;
  }
  Value update(RuleCall& call) const {
    Moments::move(call);
    const Value ahead = div(call.b, call.slots[0], call.corrections.next_first_moment);
    const Value now = div(call.b, call.gradient, call.corrections.first_moment);
    return descend(call, with_decay(call, Moments::direction(call, moving_average(call, "b1", ahead, now))));
  }
  // To adam's direction the rule adds one of g itself, and |g| is at most 1/√(1-b2) times the root of the mean square.
  double largest_change(const Bounds& bounds) const { return 2.0 * moments().largest_change(bounds); }

  Moments moments() const { return {b1, b2, eps}; }
};

}  // namespace pmaptrain::optimizers
