// The Huber loss of numbers.
#pragma once

#include "core/losses/keys.h"

namespace pmaptrain::losses {

struct Huber {
  double delta = 1.0;

  static constexpr Outputs outputs = Outputs::values;

  static Declaration<Huber> declaration() {
    return declare::kind<Huber>(
        {.path = "huber",
         .meaning =
             "For numeric targets: the Huber loss. With d = |output - target|, it is d^2 / 2 for d <= delta, else "
             "delta * (d - delta / 2), averaged over the outputs.",
         .example = "loss: huber\nloss: {huber: {delta: 2.0}}"},
        field(&Huber::delta, {.path = "delta",
                              .high = declare::unbounded,
                              .open_low = true,
                              .shorthand = true,
                              .varies = true,
                              .meaning = "The threshold between the quadratic and the linear part.",
                              .example = "delta: 1.0"}));
  }
  void check(const LossChecks& checks) const { checks.need_numbers(); }
  std::vector<Number> numbers(const Objective& objective) const { return {{"loss/delta", delta, objective.dtype}}; }
  // With q = min(|e|, delta): q²/2 + delta · (|e| - q).
  Value losses(const LossCall& call) const {
    const auto& [b, output, targets, numbers, inside, classes] = call;
    const Value distance = b.emit(ops::Abs{}, {difference(b, output, targets)});
    const Value near = b.emit(ops::Min{}, {distance, numbers["loss/delta"]});
    const Value square = mul(b, mul(b, near, near), 0.5);
    const Value far = mul(b, sub(b, distance, near), numbers["loss/delta"]);
    return call.mean(add(b, square, far));
  }
};

}  // namespace pmaptrain::losses
