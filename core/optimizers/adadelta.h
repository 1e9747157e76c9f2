// AdaDelta (Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012), as optax.adadelta.
//
// g' = g + weight_decay·w
// v' = rho·v + (1-rho)·g'²,  u = (√(x + eps) / √(v' + eps))·g',  x' = rho·x + (1-rho)·u²
// w' = w - rate·u
#pragma once

#include "core/optimizers/terms.h"

namespace pmaptrain::optimizers {

struct AdaDelta {
  double rho = 0.9, eps = 1e-6, weight_decay = 0.0;

  static declare::Declaration<AdaDelta> declaration() {
    return declare::kind<AdaDelta>(
        {.path = "adadelta",
         .meaning = "AdaDelta: the gradient, scaled by the root mean square of past updates over that of past "
                    "gradients. Learning rates are near 1.",
         .example = "adadelta: {rho: 0.9}"},
        decay_rate(&AdaDelta::rho, "rho", "Exponential decay rate of both averages of squares.", "rho: 0.95"),
        eps_of(&AdaDelta::eps, "eps: 1.0e-6",
               "Constant added to both averages before their roots; it sets the size of the first updates."),
        weight_decay_of(&AdaDelta::weight_decay, coupled_decay, "weight_decay: 1.0e-4"));
  }

  std::vector<SlotKind> slots() const { return {{"adadelta.e_g"}, {"adadelta.e_x"}}; }
  std::vector<Number> numbers(DType dtype) const {
    std::vector<Number> all;
    add_decay(all, "rho", rho, dtype);
    all.push_back({"eps", eps, dtype});
    return all;
  }
  Value update(RuleCall& call) const {
    Builder& b = call.b;
    const Value added = call.numbers["eps"];
    const Value gradient = with_decay(call, call.gradient);
    call.slots[0] = average_of_squares(call, "rho", call.slots[0], gradient);
    const Value of_updates = square_root(b, add(b, call.slots[1], added));
    const Value of_gradients = square_root(b, add(b, call.slots[0], added));
    // The quotient first, as in Optax: the product of a large or a tiny gradient may not be in f32's range.
    const Value direction = mul(b, div(b, of_updates, of_gradients), gradient);
    call.slots[1] = average_of_squares(call, "rho", call.slots[1], direction);
    return descend(call, direction);
  }
  double largest_change(const Bounds&) const { return no_bound; }  // updates may grow from step to step
};

}  // namespace pmaptrain::optimizers
