// Stochastic gradient descent.
//
// g' = g + weight_decay·w,  t' = g' + momentum·t
// w' = w - rate·t', with nesterov w - rate·(g' + momentum·t')
#pragma once

#include "core/optimizers/terms.h"

namespace pmaptrain::optimizers {

struct Sgd {
  double momentum = 0.0;
  bool nesterov = false;
  double weight_decay = 0.0;

  static declare::Declaration<Sgd> declaration() {
    return declare::kind<Sgd>({.path = "sgd",
                               .meaning = "Stochastic gradient descent, with optional momentum.",
                               .example = "sgd: {momentum: 0.9}"},
                              momentum_of(&Sgd::momentum), nesterov_of(&Sgd::nesterov),
                              weight_decay_of(&Sgd::weight_decay,
                                              "The coefficient of weight decay; weight_decay * parameter is added to "
                                              "the gradient, before momentum (add_decayed_weights).",
                                              "weight_decay: 1.0e-4"));
  }

  bool keeps_without_gradient() const { return momentum == 0.0; }
  std::vector<SlotKind> slots() const {
    return momentum != 0.0 ? std::vector<SlotKind>{{"sgd.trace"}} : std::vector<SlotKind>{};
  }
  std::vector<Number> numbers(DType dtype) const {
    if (momentum == 0.0) return {};
    return {{"momentum", momentum, dtype}};
  }
  Value update(RuleCall& call) const {
    Builder& b = call.b;
    const Value gradient = with_decay(call, call.gradient);
    if (call.slots.empty()) return descend(call, gradient);
    const Value factor = call.numbers["momentum"];
    call.slots[0] = add(b, gradient, mul(b, call.slots[0], factor));
    if (!nesterov) return descend(call, call.slots[0]);
    return descend(call, add(b, gradient, mul(b, call.slots[0], factor)));
  }
  // |w' - w| ≤ rate·|t'|. The trace t' is a weighted sum of gradients, whose weights sum to at most 1/(1 - momentum).
  // It may overflow unless the gradient is clipped. Without momentum and weight decay t' is g, so the bound always
  // holds.
  double largest_change(const Bounds& bounds) const {
    const double trace = bounds.gradient / (1.0 - momentum);
    const bool decays = bounds.weight_decay != 0.0, remembers = momentum != 0.0;
    if ((decays || remembers) && !(trace <= negligible)) return no_bound;
    if (decays && (remembers || !decays_towards_zero(bounds))) return no_bound;
    return bounds.learning_rate * trace;
  }
  Value slot_bound(Builder&, Value largest) const { return largest; }
};

}  // namespace pmaptrain::optimizers
