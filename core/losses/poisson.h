// The Poisson loss of counts. The outputs are logarithms of rates; predictions and metrics are of the rates.
#pragma once

#include "core/losses/keys.h"

namespace pmaptrain::losses {

struct Poisson {
  static constexpr Outputs outputs = Outputs::values;

  static Declaration<Poisson> declaration() {
    return declare::kind<Poisson>(
        {.path = "poisson",
         .meaning =
             "For counts, targets of at least 0: the Poisson loss exp(output) - target * output, averaged over the "
             "outputs, as PyTorch's PoissonNLLLoss. Outputs are logarithms of rates; predictions and metrics are "
             "of the rates.",
         .example = "loss: poisson"});
  }
  void check(const LossChecks& checks) const { checks.need_numbers(); }
  std::vector<Number> numbers(const Objective&) const { return {}; }
  Value losses(const LossCall& call) const {
    const auto& [b, output, targets, numbers, inside, classes] = call;
    const Value expected = mul(b, output, cast(b, targets, b.type(output).dtype));
    return call.mean(sub(b, b.emit(ops::Exp{}, {output}), expected));
  }
};

}  // namespace pmaptrain::losses
