// As optax.polynomial_schedule.
#pragma once

#include "core/schedules/keys.h"

namespace pmaptrain::schedules {

struct Polynomial {
  double init_value = 0.0, end_value = 0.0, power = 1.0;
  std::optional<Duration> transition;

  static Declaration<Polynomial> declaration() {
    return declare::kind<Polynomial>(
        {.path = "polynomial",
         .meaning = "(init_value - end_value) * (1 - t / transition)^power + end_value, where t is the number of "
                    "updates done (optax.polynomial_schedule).",
         .example = "learning_rate: {polynomial: {init_value: 0.1, end_value: 0.001, power: 2.0}}"},
        field(&Polynomial::init_value, init_value_key()), field(&Polynomial::end_value, end_value_key()),
        field(&Polynomial::power, {.path = "power",
                                   .high = declare::unbounded,
                                   .open_low = true,
                                   .varies = true,
                                   .structural = declare::Structural{1.0, "a straight line has no power"},
                                   .meaning = "The exponent.",
                                   .example = "power: 2.0"}),
        field(&Polynomial::transition, length_key("transition", "The duration of the change.")));
  }
  void add(Making& making, std::int64_t start) const {
    const std::int64_t steps = making.steps(transition, "transition", start);
    making.add(start, polynomial(making.scaled(init_value), making.scaled(end_value), power, steps));
  }
};

}  // namespace pmaptrain::schedules
