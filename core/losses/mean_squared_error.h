// The mean squared error of numbers.
#pragma once

#include "core/losses/keys.h"

namespace pmaptrain::losses {

struct MeanSquaredError {
  static constexpr Outputs outputs = Outputs::values;

  static Declaration<MeanSquaredError> declaration() {
    return declare::kind<MeanSquaredError>(
        {.path = "mean_squared_error",
         .meaning =
             "For numeric targets: the mean squared error. Targets have shape (N, outputs) and are not broadcast.",
         .example = "loss: mean_squared_error"});
  }
  void check(const LossChecks& checks) const { checks.need_numbers(); }
  std::vector<Number> numbers(const Objective&) const { return {}; }
  Value losses(const LossCall& call) const {
    const Value error = difference(call.b, call.output, call.targets);
    return call.mean(mul(call.b, error, error));
  }
};

}  // namespace pmaptrain::losses
