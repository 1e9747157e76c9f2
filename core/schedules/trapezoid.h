// A warm-up, a constant rate and a decay (Hu et al., "MiniCPM", 2024, call it WSD): optax.linear_schedule,
// optax.constant_schedule and optax.linear_schedule, joined.
#pragma once

#include "core/base/text.h"
#include "core/schedules/keys.h"

namespace pmaptrain::schedules {

struct Trapezoid {
  double init_value = 0.0, peak_value = 0.0;
  Duration warmup, decay;
  std::optional<Duration> transition;  // of warm-up, constant rate and decay together
  double end_value = 0.0;

  static Declaration<Trapezoid> declaration() {
    return declare::kind<Trapezoid>(
        {.path = "trapezoid",
         .meaning =
             "From init_value to peak_value in a straight line, then peak_value, and at the end to end_value in a "
             "straight line: a warm-up, a constant rate and a decay.",
         .example = "learning_rate:\n  trapezoid: {peak_value: 0.001, warmup: 1 epoch, decay: 2 epochs}"},
        field(&Trapezoid::init_value, init_value_key(Need::optional)),
        field(&Trapezoid::peak_value, peak_value_key("The learning rate between both.", "peak_value: 0.001")),
        field(&Trapezoid::warmup, {.path = "warmup",
                                   .need = Need::required,
                                   .or_zero = true,
                                   .meaning = "The duration of the warm-up; with 0 there is none.",
                                   .example = "warmup: 1 epoch"}),
        field(&Trapezoid::decay, {.path = "decay",
                                  .need = Need::required,
                                  .or_zero = true,
                                  .meaning = "The duration of the decay at the end; with 0 there is none.",
                                  .example = "decay: 2 epochs"}),
        field(&Trapezoid::transition, length_key("transition", "The duration of all three together.")),
        field(&Trapezoid::end_value, end_value_key()));
  }
  void add(Making& making, std::int64_t start) const {
    const std::int64_t rise = making.steps(warmup, "warmup"), fall = making.steps(decay, "decay");
    const std::int64_t all = making.steps(transition, "transition", start);
    if (rise + fall > all) {
      Making::refuse(decay.place,
                     "warmup and decay are " + counted(rise + fall, "step") + " together, but transition is " +
                         counted(all, "step") + (transition ? "" : ": what is left of the run"),
                     "give them at most " + counted(all, "step") + " together, or a longer transition");
    }
    making.reaches(warmup, rise, "warmup", start, "the rate does not reach peak_value");
    const double peak = making.scaled(peak_value);
    if (rise > 0) making.add(start, polynomial(making.scaled(init_value), peak, 1.0, rise));
    if (rise + fall < all) making.add(start + rise, constant(peak));
    if (fall > 0) making.add(start + all - fall, polynomial(peak, making.scaled(end_value), 1.0, fall));
  }
};

}  // namespace pmaptrain::schedules
