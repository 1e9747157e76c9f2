// As optax.cosine_onecycle_schedule.
#pragma once

#include "core/base/text.h"
#include "core/schedules/keys.h"

namespace pmaptrain::schedules {

struct CosineOnecycle {
  double peak_value = 0.0;
  std::optional<Duration> transition;
  double pct_start = 0.3;

  static Declaration<CosineOnecycle> declaration() {
    return declare::kind<CosineOnecycle>(
        {.path = "cosine_onecycle",
         .meaning = "From peak_value / 25 to peak_value and then to peak_value / 250000, both along half a cosine wave "
                    "(optax.cosine_onecycle_schedule).",
         .example = "learning_rate: {cosine_onecycle: {peak_value: 0.01}}"},
        field(&CosineOnecycle::peak_value, peak_value_key("The largest learning rate.", "peak_value: 0.01")),
        field(&CosineOnecycle::transition, length_key("transition", "The duration of the cycle.")),
        field(&CosineOnecycle::pct_start, {.path = "pct_start",
                                           .high = 1,
                                           .open_low = true,
                                           .open_high = true,
                                           .meaning = "The share of the cycle in which the rate rises.",
                                           .example = "pct_start: 0.3"}));
  }
  void add(Making& making, std::int64_t start) const {
    // The values of Optax's div_factor and final_div_factor.
    constexpr double div_factor = 25.0, final_div_factor = 1e4;
    const std::int64_t steps = making.steps(transition, "transition", start);
    const auto rise = static_cast<std::int64_t>(pct_start * static_cast<double>(steps));
    if (rise < 1) {
      making.refuse("pct_start " + exact(pct_start) + " of " + counted(steps, "step") + " comes to no step",
                    "give a larger pct_start, or a longer transition");
    }
    const double peak = making.scaled(peak_value), init = peak / div_factor;
    making.add(start, cosine(init, peak, rise));
    making.add(start + rise, cosine(peak, init / final_div_factor, steps - rise));
  }
};

}  // namespace pmaptrain::schedules
