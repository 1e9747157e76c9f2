// Losses.
//
// A loss is one file of this folder and one line of list.cpp: a struct of its options, which declares their keys
// (core/declare/kind.h), and
//
//   static constexpr Outputs outputs                    what it takes the outputs of the model for
//   void check(const LossChecks& checks)                its targets; completes the weights of classes
//   std::vector<Number> numbers(const Objective&) const the numbers of the config that its equations read
//   Value losses(const LossCall& call) const            the loss of each example (objective.h)
//
// A member `class_weights`, `positive_weights` or `ignore_label` is what LossRules says of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/declare/kind.h"
#include "core/equations/numbers.h"
#include "core/graph/builder.h"

namespace pmaptrain::losses {

using declare::ClassWeights;
using equations::Number;
using equations::Numbers;

// What a loss takes the outputs of the model for.
enum class Outputs {
  softmax_logits,  // of classes, along the last dimension
  sigmoid_logits,  // each of its own
  values  // numbers like the targets, which are numbers whatever their type; other losses read integers as labels
};

struct Loss;
struct LossCall;
struct LossChecks;
struct Objective;

// The interface of all kinds.
class LossRules {
 public:
  virtual ~LossRules() = default;

  // The name in the config: "softmax_cross_entropy".
  virtual const std::string& name() const = 0;
  // Of focal softmax_logits, but of a single output or several labels sigmoid_logits (Objective::outputs).
  virtual Outputs outputs() const = 0;
  // Reports targets and options that do not fit. The same loss, with the weights of classes that balance the training
  // split where the config asks for these.
  virtual Loss checked(const LossChecks& checks) const = 0;
  virtual std::vector<Number> numbers(const Objective& objective) const = 0;
  // [B], or [B, T] where labels of positions are ignored.
  virtual Value losses(const LossCall& call) const = 0;
  // Null for a loss that has none.
  virtual const ClassWeights* class_weights() const = 0;
  virtual const ClassWeights* positive_weights() const = 0;
  // Examples, or positions of a sequence, with this label do not count.
  virtual std::optional<std::int64_t> ignored_label() const = 0;
  // Whether losses() also takes divided logits, where each device has some of the classes (Classes).
  virtual bool takes_parts_of_classes() const = 0;
};

// The interface for a loss of one kind (objective.h).
template <class Kind>
class Held;

// A loss of any kind.
struct Loss : declare::Any<LossRules, Held> {
  using Any::Any;
};
// The list of all kinds: list.cpp.
const std::vector<declare::AnyKind>& family(declare::Tag<Loss>);

// False without a loss, which a config with errors may lack.
inline bool takes_numbers(const Loss& loss) { return loss && loss->outputs() == Outputs::values; }

}  // namespace pmaptrain::losses
