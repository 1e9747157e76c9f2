// As optax.warmup_cosine_decay_schedule.
#pragma once

#include "core/base/text.h"
#include "core/schedules/keys.h"

namespace pmaptrain::schedules {

struct WarmupCosineDecay {
  double init_value = 0.0, peak_value = 0.0;
  Duration warmup;
  std::optional<Duration> decay;  // counts the warm-up
  double end_value = 0.0;

  static Declaration<WarmupCosineDecay> declaration() {
    return declare::kind<WarmupCosineDecay>(
        {.path = "warmup_cosine_decay",
         .meaning = "From init_value to peak_value in a straight line, then to end_value along half a cosine wave "
                    "(optax.warmup_cosine_decay_schedule).",
         .example = "learning_rate:\n  warmup_cosine_decay: {peak_value: 0.001, warmup: 1 epoch}"},
        field(&WarmupCosineDecay::init_value, init_value_key(Need::optional)),
        field(&WarmupCosineDecay::peak_value,
              peak_value_key("The learning rate after the warm-up.", "peak_value: 0.001")),
        field(&WarmupCosineDecay::warmup, {.path = "warmup",
                                           .need = Need::required,
                                           .or_zero = true,
                                           .meaning = "The duration of the warm-up; with 0 there is none, and the "
                                                      "first update has peak_value.",
                                           .example = "warmup: 1 epoch"}),
        field(&WarmupCosineDecay::decay, length_key("decay", "The duration of warm-up and decay together.")),
        field(&WarmupCosineDecay::end_value, end_value_key()));
  }
  void add(Making& making, std::int64_t start) const {
    const std::int64_t rise = making.steps(warmup, "warmup"), both = making.steps(decay, "decay", start);
    if (rise >= both) {
      Making::refuse(warmup.place,
                     "warmup is " + counted(rise, "step") + ", but decay, which counts the warm-up, is " +
                         counted(both, "step") + (decay ? "" : ": what is left of the run"),
                     "give a warmup of at most " + counted(both - 1, "step") + ", or a longer decay");
    }
    making.reaches(warmup, rise, "warmup", start, "the rate does not reach peak_value");
    const double peak = making.scaled(peak_value);
    if (rise > 0) making.add(start, polynomial(making.scaled(init_value), peak, 1.0, rise));
    making.add(start + rise, cosine(peak, making.scaled(end_value), both - rise));
  }
};

}  // namespace pmaptrain::schedules
