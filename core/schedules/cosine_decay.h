// As optax.cosine_decay_schedule.
#pragma once

#include "core/schedules/keys.h"

namespace pmaptrain::schedules {

struct CosineDecay {
  double init_value = 0.0;
  std::optional<Duration> decay;
  double alpha = 0.0;

  static Declaration<CosineDecay> declaration() {
    return declare::kind<CosineDecay>(
        {.path = "cosine_decay",
         .meaning = "From init_value to alpha * init_value along half a cosine wave (optax.cosine_decay_schedule).",
         .example = "learning_rate: {cosine_decay: {init_value: 0.1}}"},
        field(&CosineDecay::init_value, init_value_key()),
        field(&CosineDecay::decay, length_key("decay", "The duration of the decay.")),
        field(&CosineDecay::alpha, {.path = "alpha",
                                    .high = declare::unbounded,
                                    .varies = true,
                                    .meaning = "The last learning rate as a multiple of init_value.",
                                    .example = "alpha: 0.01"}));
  }
  void add(Making& making, std::int64_t start) const {
    const double init = making.scaled(init_value);
    making.add(start, cosine(init, alpha * init, making.steps(decay, "decay", start)));
  }
};

}  // namespace pmaptrain::schedules
