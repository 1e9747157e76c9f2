// As optax.exponential_decay.
#pragma once

#include "core/schedules/keys.h"

namespace pmaptrain::schedules {

struct ExponentialDecay {
  double init_value = 0.0;
  Duration transition;
  double decay_rate = 1.0;
  bool staircase = false;

  static Declaration<ExponentialDecay> declaration() {
    return declare::kind<ExponentialDecay>(
        {.path = "exponential_decay",
         .meaning = "init_value * decay_rate^(t / transition), where t is the number of updates done "
                    "(optax.exponential_decay).",
         .example = "learning_rate: {exponential_decay: {init_value: 0.1, transition: 1 epoch, decay_rate: 0.9}}"},
        field(&ExponentialDecay::init_value, init_value_key()),
        field(&ExponentialDecay::transition, {.path = "transition",
                                              .need = Need::required,
                                              .meaning = "The duration in which the rate is multiplied by decay_rate.",
                                              .example = "transition: 1 epoch"}),
        field(&ExponentialDecay::decay_rate, {.path = "decay_rate",
                                              .need = Need::required,
                                              .high = declare::unbounded,
                                              .open_low = true,
                                              .varies = true,
                                              .meaning = "The factor of each transition.",
                                              .example = "decay_rate: 0.9"}),
        field(&ExponentialDecay::staircase, {.path = "staircase",
                                             .meaning = "Whether the rate changes only at whole transitions.",
                                             .example = "staircase: true"}));
  }
  void add(Making& making, std::int64_t start) const {
    const std::int64_t steps = making.steps(transition, "transition");
    making.add(start, exponential(making.scaled(init_value), decay_rate, steps, staircase));
  }
};

}  // namespace pmaptrain::schedules
