// What update rules have in common: keys, terms of their equations, bounds. w is the parameter, g its gradient.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/equations/arithmetic.h"
#include "core/optimizers/rule.h"

namespace pmaptrain::optimizers {

using namespace equations;

// ---- keys ----------------------------------------------------------------------------------------------------------
inline constexpr std::string_view decoupled_decay =
    "The coefficient of weight decay; the update subtracts learning_rate * weight_decay * parameter.";

inline constexpr std::string_view coupled_decay =
    "The coefficient of weight decay; weight_decay * parameter is added to the gradient (add_decayed_weights).";

template <class Rule>
declare::Field<Rule> decay_rate(double Rule::*member, std::string_view name, std::string_view meaning,
                                std::string_view example) {
  return declare::field(member, {.path = std::string(name),
                                 .high = 1,
                                 .open_high = true,
                                 .varies = true,
                                 .meaning = meaning,
                                 .example = example});
}
template <class Rule>
declare::Field<Rule> b1_of(double Rule::*member) {
  return decay_rate(member, "b1", "Exponential decay rate of the first moment.", "b1: 0.9");
}
template <class Rule>
declare::Field<Rule> b2_of(double Rule::*member) {
  return decay_rate(member, "b2", "Exponential decay rate of the second moment.", "b2: 0.999");
}
template <class Rule>
declare::Field<Rule> eps_of(double Rule::*member, std::string_view example,
                            std::string_view meaning = "Constant added to the denominator.") {
  return declare::field(member, {.path = "eps",
                                 .high = declare::unbounded,
                                 .open_low = true,
                                 .varies = true,
                                 .meaning = meaning,
                                 .example = example});
}
template <class Rule>
declare::Field<Rule> momentum_of(double Rule::*member) {
  declare::Field<Rule> momentum = decay_rate(member, "momentum", "The momentum coefficient.", "momentum: 0.9");
  momentum.key.structural = {0.0, "without momentum there is no trace"};
  return momentum;
}
template <class Rule>
declare::Field<Rule> nesterov_of(bool Rule::*member) {
  return declare::field(
      member, {.path = "nesterov", .meaning = "Whether to use Nesterov momentum.", .example = "nesterov: true"});
}
template <class Rule>
declare::Field<Rule> weight_decay_of(double Rule::*member, std::string_view meaning, std::string_view example) {
  return declare::field(member, {.path = "weight_decay",
                                 .high = declare::unbounded,
                                 .varies = true,
                                 .structural = declare::Structural{0.0, "without weight decay nothing is added"},
                                 .meaning = meaning,
                                 .example = example});
}

// ---- terms ---------------------------------------------------------------------------------------------------------
Value square_root(Builder& b, Value x);
// w - learning_rate·direction
Value descend(const RuleCall& call, Value direction);
// `value` + weight_decay·w
Value with_decay(const RuleCall& call, Value value);

// Adds the numbers that a moving average with this decay reads and, if `corrects`, those of its bias correction.
void add_decay(std::vector<Number>& out, const std::string& name, double decay, DType dtype, bool corrects = false);
// decay·old + (1 - decay)·value
Value moving_average(const RuleCall& call, const std::string& decay, Value old, Value value);
Value average_of_squares(const RuleCall& call, const std::string& decay, Value old, Value value);
// 1 - decay^step as a scalar of `dtype`, from log decay.
Value bias_correction(Builder& b, Value log_decay, Value step, DType dtype);

// ---- bounds --------------------------------------------------------------------------------------------------------
inline constexpr double no_bound = std::numeric_limits<double>::infinity();

// A change up to this size is less than half of the distance between neighbouring numbers at the end of f32's range.
inline constexpr double negligible = 1e30;

// Squares of gradients below 1e-19 vanish in f32. The gradient is then divided by eps alone, so with a smaller eps than
// this the step would be large.
inline constexpr double least_eps = 1e-15;

// Whether the factors of a moving average, decay and 1 - decay, still add up to about 1 when both are rounded to f32.
// If f32 rounds the decay up to 1, they do not, and the average of equal values grows.
bool is_average_in_f32(double decay);
// Whether weight decay moves every parameter towards 0, through finite values only.
bool decays_towards_zero(const Bounds& bounds);
// A bound for the elements of adam's direction: 1/√((1-b2)·(1-b1²/b2)) for b1² < b2, by Cauchy and Schwarz on the sums
// m' and v', unless eps is so small that squares which vanish matter.
double largest_direction(double b1, double b2, double eps);

}  // namespace pmaptrain::optimizers
