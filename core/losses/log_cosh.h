// The logarithm of the hyperbolic cosine of errors: a smooth loss between the squared and the absolute error.
#pragma once

#include "core/losses/keys.h"

namespace pmaptrain::losses {

struct LogCosh {
  static constexpr Outputs outputs = Outputs::values;

  static Declaration<LogCosh> declaration() {
    return declare::kind<LogCosh>(
        {.path = "log_cosh",
         .meaning = "For numeric targets: log(cosh(output - target)), averaged over the outputs. It is about half the "
                    "square of a small error and the size of a large one, less log 2; its gradient is the tanh of the "
                    "error.",
         .example = "loss: log_cosh"});
  }
  void check(const LossChecks& checks) const { checks.need_numbers(); }
  std::vector<Number> numbers(const Objective&) const { return {}; }
  // log cosh e = |e| + log((1 + exp(-2 |e|)) / 2): no exponential overflows, and a small error keeps its digits.
  Value losses(const LossCall& call) const {
    const auto& [b, output, targets, numbers, inside, classes] = call;
    const Value distance = b.emit(ops::Abs{}, {difference(b, output, targets)});
    const Value rest = b.emit(ops::Log1p{}, {mul(b, b.emit(ops::Expm1{}, {mul(b, distance, -2.0)}), 0.5)});
    return call.mean(add(b, distance, rest));
  }
};

}  // namespace pmaptrain::losses
