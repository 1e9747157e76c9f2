// The pinball loss. The outputs are quantiles of each number of a target: those of the first, then those of the second.
#pragma once

#include <algorithm>
#include <functional>

#include "core/losses/keys.h"

namespace pmaptrain::losses {

struct Quantile {
  std::vector<double> q{0.1, 0.5, 0.9};

  static constexpr Outputs outputs = Outputs::values;

  static Declaration<Quantile> declaration() {
    return declare::kind<Quantile>(
        {.path = "quantile",
         .meaning = "For numeric targets: the pinball loss of quantiles. With e = target - output, it is max(q * e, "
                    "(q - 1) * e), averaged over the outputs. The model has an output for each q of each number of a "
                    "target. Metrics are of the quantile nearest to the median.",
         .example = "loss: quantile\nloss: {quantile: {q: [0.05, 0.5, 0.95]}}"},
        field(&Quantile::q, {.path = "q",
                             .fallback = "[0.1, 0.5, 0.9]",
                             .high = 1,
                             .open_low = true,
                             .open_high = true,
                             .meaning = "The quantiles, in ascending order.",
                             .example = "q: [0.1, 0.5, 0.9]"}));
  }
  void check(const LossChecks& checks) const {
    checks.need_numbers();
    if (std::adjacent_find(q.begin(), q.end(), std::greater_equal<>()) == q.end()) return;
    checks.refuse("the quantiles q do not ascend", "list each once, the least first");
  }
  std::vector<Number> numbers(const Objective&) const { return {}; }
  // With e = t - y: max(q e, (q - 1) e) = max(e, 0) - (1 - q) e.
  Value losses(const LossCall& call) const {
    const auto& [b, output, targets, numbers, inside, classes] = call;
    const Shape shape = b.type(output).shape;
    const auto count = std::ssize(q);
    const Shape each{shape.front(), shape.back() / count, count};
    const Value flat = b.emit(ops::Reshape{{each[0], each[1]}}, {cast(b, targets, b.type(output).dtype)});
    const Value repeated = b.emit(ops::Broadcast{each, {0, 1}}, {flat});
    const Value error = sub(b, repeated, b.emit(ops::Reshape{each}, {output}));
    std::vector<double> rest;
    for (const double each_q : q) rest.push_back(1 - each_q);
    const Value above = broadcast_along(b, vector_constant(b, b.type(output).dtype, rest), each, 2);
    const Value positive = b.emit(ops::Max{}, {error, scalar_like(b, error, 0.0)});
    return call.mean(sub(b, positive, mul(b, above, error)));
  }
};

// How many outputs a number of a target has: one for each quantile, else 1.
inline std::int64_t quantiles_of(const Loss& loss) {
  const auto* const quantile = loss.as<Quantile>();
  return quantile != nullptr ? std::ssize(quantile->q) : 1;
}

}  // namespace pmaptrain::losses
