// The update rules as equations, with the semantics of Optax. rules.cpp has one struct for each alternative of
// spec::OptimizerRule, with everything that is particular to the rule; a missing struct is a compile-time error.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/graph/builder.h"
#include "core/model/numbers.h"
#include "core/spec/spec.h"

namespace pmaptrain::train {

// State that a rule keeps for every trained parameter, as a value of the parameter's type: "adam.mu/conv_0.kernel".
struct SlotKind {
  std::string name;  // "adam.mu"
  double initial = 0.0;
};
std::vector<SlotKind> slot_kinds(const spec::OptimizerRule& rule);

// The rule's weight decay; none for a rule that has no weight decay.
std::optional<double> weight_decay_of(const spec::OptimizerRule& rule);

// Whether an update without weight decay leaves a parameter and its slots as they are where the gradient is 0. Then
// only the rows of a table that a batch names need an update.
bool keeps_without_gradient(const spec::OptimizerRule& rule);

// The numbers (scalar inputs) that the equations of a rule read: "b1", "eps". Weight decay is not among them, because
// each group of parameters may set its own.
std::vector<model::Number> rule_numbers(const spec::OptimizerRule& rule, DType dtype);

// Divisors of moving averages for rules with bias correction: 1 - decay^step, scalars of the parameters' dtype that all
// parameters share. A rule sets those that its update reads.
struct BiasCorrections {
  Value first_moment;       // for the average of gradients
  Value second_moment;      // for the average of squares; rmsprop uses it for both averages
  Value next_first_moment;  // first_moment of the next step, for nadam
};
// `step` is i64[], 1 for the first update.
BiasCorrections bias_corrections(Builder& b, const spec::OptimizerRule& rule, const model::Numbers& numbers, Value step,
                                 DType dtype);

// What the update of one parameter reads.
struct RuleCall {
  Builder& b;
  Value parameter, gradient;
  std::span<Value> slots;  // by kind; the update replaces them by its new values
  Value learning_rate;     // of the parameter's dtype
  std::optional<Value> weight_decay;
  BiasCorrections corrections;
  const model::Numbers& numbers;
};
// Returns the new parameter.
Value updated_parameter(const spec::OptimizerRule& rule, RuleCall& call);

// Upper bounds of what an update reads.
struct Bounds {
  double learning_rate = 0, weight_decay = 0;
  double gradient = 0;  // the largest magnitude of an element, after clipping
};
// The most by which an update can change an element of a parameter. Weight decay that moves the element towards 0 does
// not count. Infinity if no bound is known, or if a slot could become infinite although slot_bound() is finite.
double largest_change(const spec::OptimizerRule& rule, const Bounds& bounds);

// For a rule with a finite largest_change(): a scalar that is finite exactly if every slot stays finite. It is computed
// from the largest magnitude of an element of the clipped gradient. For averages of squares it is the square of that
// magnitude, since a mean of squares is at most as large as the largest square. (Rounding could make the mean larger,
// but only after thousands of steps with squares within a thousandth of the end of f32's range.)
Value slot_bound(Builder& b, const spec::OptimizerRule& rule, Value largest_gradient);

}  // namespace pmaptrain::train
