// As optax.piecewise_constant_schedule.
#pragma once

#include "core/schedules/keys.h"

namespace pmaptrain::schedules {

struct PiecewiseConstant {
  double init_value = 0.0;
  std::vector<declare::Scale> boundaries_and_scales;  // scales multiply

  static Declaration<PiecewiseConstant> declaration() {
    return declare::kind<PiecewiseConstant>(
        {.path = "piecewise_constant",
         .meaning = "init_value, multiplied by each scale from its boundary on; scales multiply "
                    "(optax.piecewise_constant_schedule).",
         .example = "learning_rate:\n  piecewise_constant:\n    init_value: 0.1\n    boundaries_and_scales: [[30 "
                    "epochs, 0.1], [60 epochs, 0.1]]"},
        field(&PiecewiseConstant::init_value, init_value_key()),
        field(&PiecewiseConstant::boundaries_and_scales,
              {.path = "boundaries_and_scales",
               .need = Need::required,
               .high = declare::unbounded,
               .or_zero = true,
               .varies = true,
               .meaning = "Pairs of a boundary, counted from the start, and the factor from there on.",
               .example = "boundaries_and_scales: [[30 epochs, 0.1], [60 epochs, 0.1]]"}));
  }
  void add(Making& making, std::int64_t start) const {
    static constexpr const char* key = "boundaries_and_scales";
    double value = making.scaled(init_value);
    making.add(start, constant(value));
    std::int64_t before = -1;
    for (const declare::Scale& scale : boundaries_and_scales) {
      before = making.next_boundary(scale.boundary, key, before);
      making.reaches(scale.boundary, before, key, start, "this boundary has no effect");
      value *= scale.scale;
      making.add(start + before, constant(value));
    }
  }
};

}  // namespace pmaptrain::schedules
