// The mean absolute error of numbers.
#pragma once

#include "core/losses/keys.h"

namespace pmaptrain::losses {

struct MeanAbsoluteError {
  static constexpr Outputs outputs = Outputs::values;

  static Declaration<MeanAbsoluteError> declaration() {
    return declare::kind<MeanAbsoluteError>({.path = "mean_absolute_error",
                                             .meaning = "For numeric targets: the mean absolute error.",
                                             .example = "loss: mean_absolute_error"});
  }
  void check(const LossChecks& checks) const { checks.need_numbers(); }
  std::vector<Number> numbers(const Objective&) const { return {}; }
  Value losses(const LossCall& call) const {
    return call.mean(call.b.emit(ops::Abs{}, {difference(call.b, call.output, call.targets)}));
  }
};

}  // namespace pmaptrain::losses
