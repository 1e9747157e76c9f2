// The update rules of optimizers, with the semantics of Optax, as equations.
//
// A rule is one file of this folder and one line of list.cpp: a struct of its numbers, which declares their keys, and
// these functions. The last three are optional.
//
//   std::vector<SlotKind> slots() const
//   std::vector<Number> numbers(DType dtype) const
//   Value update(RuleCall& call) const
//   double largest_change(const Bounds& bounds) const
//   BiasCorrections corrections(Builder& b, const Numbers& numbers, Value step, DType dtype) const
//   bool keeps_without_gradient() const
//   Value slot_bound(Builder& b, Value largest_gradient) const
//
// UpdateRule says what they return. A member `weight_decay` is the coefficient of weight decay.
#pragma once

#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/declare/kind.h"
#include "core/equations/numbers.h"
#include "core/graph/builder.h"

namespace pmaptrain::optimizers {

using equations::Number;
using equations::Numbers;

// State that a rule keeps for every trained parameter, as a value of the parameter's type: "adam.mu/conv_0.kernel".
struct SlotKind {
  std::string name;  // "adam.mu"
  double initial = 0.0;
};

// Divisors of moving averages for rules with bias correction: 1 - decay^step, scalars of the parameters' dtype that all
// parameters share. A rule sets those that its update reads.
struct BiasCorrections {
  Value first_moment;       // for the average of gradients
  Value second_moment;      // for the average of squares; rmsprop uses it for both averages
  Value next_first_moment;  // first_moment of the next step, for nadam
};

// What the update of one parameter reads.
struct RuleCall {
  Builder& b;
  Value parameter, gradient;
  std::span<Value> slots;  // by kind; the update replaces them by its new values
  Value learning_rate;     // of the parameter's dtype
  std::optional<Value> weight_decay;
  BiasCorrections corrections;
  const Numbers& numbers;
};

// Upper bounds of what an update reads.
struct Bounds {
  double learning_rate = 0, weight_decay = 0;
  double gradient = 0;  // the largest magnitude of an element, after clipping
};

// The interface of all rules.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  // The name in the config: "adam".
  virtual const std::string& name() const = 0;
  virtual std::vector<SlotKind> slots() const = 0;
  // None for a rule that has no weight decay.
  virtual std::optional<double> weight_decay() const = 0;
  // Whether an update without weight decay leaves a parameter and its slots as they are where the gradient is 0. Then
  // only the rows of a table that a batch names need an update.
  virtual bool keeps_without_gradient() const = 0;
  // The scalar inputs that the equations read: "b1", "eps". Weight decay is not among them, because each group of
  // parameters may set its own.
  virtual std::vector<Number> numbers(DType dtype) const = 0;
  // `step` is i64[], 1 for the first update.
  virtual BiasCorrections corrections(Builder& b, const Numbers& numbers, Value step, DType dtype) const = 0;
  // Returns the new parameter.
  virtual Value update(RuleCall& call) const = 0;
  // The most by which an update can change an element of a parameter. Weight decay that moves the element towards 0
  // does not count. Infinity if no bound is known, or if a slot could become infinite although slot_bound() is finite.
  virtual double largest_change(const Bounds& bounds) const = 0;
  // For a rule with a finite largest_change(): a scalar that is finite exactly if every slot stays finite. It is
  // computed from the largest magnitude of an element of the clipped gradient. For averages of squares it is the square
  // of that magnitude, since a mean of squares is at most as large as the largest square. (Rounding could make the mean
  // larger, but only after thousands of steps with squares within a thousandth of the end of f32's range.)
  virtual Value slot_bound(Builder& b, Value largest_gradient) const = 0;
};

// x·x
Value squared(Builder& b, Value x);

// The interface for a rule of this kind.
template <class Kind>
class Held final : public declare::Holds<UpdateRule, Kind> {
  using declare::Holds<UpdateRule, Kind>::kind_;
  static_assert(
      requires(const Kind& kind) { kind.slots(); }, "this rule has no slots(): the state that it keeps, or none");
  static_assert(
      requires(const Kind& kind, DType dtype) { kind.numbers(dtype); },
      "this rule has no numbers(): the scalars of the config that its equations read");
  static_assert(
      requires(const Kind& kind, RuleCall& call) { kind.update(call); }, "this rule has no update(): its equations");
  static_assert(
      requires(const Kind& kind, const Bounds& bounds) { kind.largest_change(bounds); },
      "this rule has no largest_change(): a bound of its update, or infinity");
  // An optional function with another signature would be left out silently.
  static_assert(
      !requires { &Kind::corrections; } ||
          requires(const Kind& kind, Builder& b, const Numbers& numbers, Value step, DType dtype) {
            { kind.corrections(b, numbers, step, dtype) } -> std::same_as<BiasCorrections>;
          },
      "corrections() of this rule has another signature");
  static_assert(
      !requires { &Kind::keeps_without_gradient; } ||
          requires(const Kind& kind) {
            { kind.keeps_without_gradient() } -> std::same_as<bool>;
          },
      "keeps_without_gradient() of this rule has another signature");
  static_assert(
      !requires { &Kind::slot_bound; } ||
          requires(const Kind& kind, Builder& b, Value largest) {
            { kind.slot_bound(b, largest) } -> std::same_as<Value>;
          },
      "slot_bound() of this rule has another signature");

 public:
  using declare::Holds<UpdateRule, Kind>::Holds;

  std::vector<SlotKind> slots() const override { return kind_.slots(); }
  std::optional<double> weight_decay() const override {
    if constexpr (requires { kind_.weight_decay; }) return kind_.weight_decay;
    return std::nullopt;
  }
  bool keeps_without_gradient() const override {
    if constexpr (requires { kind_.keeps_without_gradient(); }) return kind_.keeps_without_gradient();
    return false;
  }
  std::vector<Number> numbers(DType dtype) const override { return kind_.numbers(dtype); }
  BiasCorrections corrections(Builder& b, const Numbers& numbers, Value step, DType dtype) const override {
    if constexpr (requires { kind_.corrections(b, numbers, step, dtype); }) {
      return kind_.corrections(b, numbers, step, dtype);
    }
    return {};
  }
  Value update(RuleCall& call) const override { return kind_.update(call); }
  double largest_change(const Bounds& bounds) const override { return kind_.largest_change(bounds); }
  Value slot_bound(Builder& b, Value largest_gradient) const override {
    if constexpr (requires { kind_.slot_bound(b, largest_gradient); }) return kind_.slot_bound(b, largest_gradient);
    return squared(b, largest_gradient);
  }
};

// A rule of any kind.
struct Rule : declare::Any<UpdateRule, Held> {
  using Any::Any;
};
// The list of all rules: list.cpp.
const std::vector<declare::AnyKind>& family(declare::Tag<Rule>);

}  // namespace pmaptrain::optimizers
