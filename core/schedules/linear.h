// A straight line, as optax.linear_schedule.
#pragma once

#include "core/schedules/keys.h"

namespace pmaptrain::schedules {

struct Linear {
  double init_value = 0.0, end_value = 0.0;
  std::optional<Duration> transition;

  static Declaration<Linear> declaration() {
    return declare::kind<Linear>({.path = "linear",
                                  .meaning = "From init_value to end_value in a straight line (optax.linear_schedule).",
                                  .example = "learning_rate: {linear: {init_value: 0.1, end_value: 0.0}}"},
                                 field(&Linear::init_value, init_value_key()),
                                 field(&Linear::end_value, end_value_key()),
                                 field(&Linear::transition, length_key("transition", "The duration of the change.")));
  }
  void add(Making& making, std::int64_t start) const {
    const std::int64_t steps = making.steps(transition, "transition", start);
    making.add(start, polynomial(making.scaled(init_value), making.scaled(end_value), 1.0, steps));
  }
};

}  // namespace pmaptrain::schedules
