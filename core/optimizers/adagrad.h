// AdaGrad: v' = v + g²,  w' = w - rate·g/√(v' + eps)
#pragma once

#include "core/optimizers/terms.h"

namespace pmaptrain::optimizers {

struct AdaGrad {
  double initial_accumulator_value = 0.1, eps = 1e-7;

  static declare::Declaration<AdaGrad> declaration() {
    return declare::kind<AdaGrad>(
        {.path = "adagrad",
         .meaning = "AdaGrad: the gradient divided by the root of the sum of its squares so far.",
         .example = "adagrad: {initial_accumulator_value: 0.1}"},
        declare::field(&AdaGrad::initial_accumulator_value, {.path = "initial_accumulator_value",
                                                             .high = declare::unbounded,
                                                             .meaning = "The initial value of the sum of squares.",
                                                             .example = "initial_accumulator_value: 0.1"}),
        eps_of(&AdaGrad::eps, "eps: 1.0e-7"));
  }

  // With eps of 0, a sum of squares of 0 would make the quotient NaN.
  bool keeps_without_gradient() const { return static_cast<float>(eps) > 0.0F; }
  std::vector<SlotKind> slots() const { return {{"adagrad.sum_of_squares", initial_accumulator_value}}; }
  std::vector<Number> numbers(DType dtype) const { return {{"eps", eps, dtype}}; }
  Value update(RuleCall& call) const {
    Builder& b = call.b;
    call.slots[0] = add(b, mul(b, call.gradient, call.gradient), call.slots[0]);
    // As long as all gradients and the initial sum are 0, the quotient is 0, because the dividend is 0.
    return descend(call, div(b, call.gradient, square_root(b, add(b, call.slots[0], call.numbers["eps"]))));
  }
  double largest_change(const Bounds&) const { return no_bound; }  // the sum grows
};

}  // namespace pmaptrain::optimizers
