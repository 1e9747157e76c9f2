// Lion.
//
// m' = b2·m + (1-b2)·g
// w' = w - rate·(sign(b1·m + (1-b1)·g) + weight_decay·w)
#pragma once

#include "core/optimizers/terms.h"

namespace pmaptrain::optimizers {

struct Lion {
  double b1 = 0.9, b2 = 0.99, weight_decay = 1e-3;

  static declare::Declaration<Lion> declaration() {
    return declare::kind<Lion>(
        {.path = "lion",
         .meaning = "Lion: the sign of an average of gradients, with decoupled weight decay.",
         .example = "lion: {b1: 0.9, b2: 0.99, weight_decay: 0.001}"},
        decay_rate(&Lion::b1, "b1", "The weight of the momentum in the average whose sign is the update.", "b1: 0.9"),
        decay_rate(&Lion::b2, "b2", "Exponential decay rate of the momentum.", "b2: 0.99"),
        weight_decay_of(&Lion::weight_decay, decoupled_decay, "weight_decay: 0.001"));
  }

  std::vector<SlotKind> slots() const { return {{"lion.mu"}}; }
  std::vector<Number> numbers(DType dtype) const {
    std::vector<Number> all;
    add_decay(all, "b1", b1, dtype);
    add_decay(all, "b2", b2, dtype);
    return all;
  }
  Value update(RuleCall& call) const {
    Builder& b = call.b;
    const Value average = moving_average(call, "b1", call.slots[0], call.gradient);
    const Value direction = b.emit(ops::Sign{}, {average});
    call.slots[0] = moving_average(call, "b2", call.slots[0], call.gradient);
    return descend(call, with_decay(call, direction));
  }
  double largest_change(const Bounds& bounds) const {
    return is_average_in_f32(b2) && decays_towards_zero(bounds) ? bounds.learning_rate : no_bound;
  }
  Value slot_bound(Builder&, Value largest) const { return largest; }
};

}  // namespace pmaptrain::optimizers
