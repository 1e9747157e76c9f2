// Adam with decoupled weight decay (moments.h has its equations).
#pragma once

#include "core/optimizers/moments.h"

namespace pmaptrain::optimizers {

struct AdamW {
  double b1 = 0.9, b2 = 0.999, eps = 1e-8, weight_decay = 1e-4;

  static declare::Declaration<AdamW> declaration() {
    return declare::kind<AdamW>(
        {.path = "adamw", .meaning = "Adam with decoupled weight decay.", .example = "adamw: {weight_decay: 0.01}"},
        b1_of(&AdamW::b1), b2_of(&AdamW::b2), eps_of(&AdamW::eps, "eps: 1.0e-8"),
        weight_decay_of(&AdamW::weight_decay, decoupled_decay, "weight_decay: 0.01"));
  }

  std::vector<SlotKind> slots() const { return Moments::slots("adamw"); }
  std::vector<Number> numbers(DType dtype) const { return moments().numbers(dtype); }
  BiasCorrections corrections(Builder& b, const Numbers& numbers, Value step, DType dtype) const {
    return Moments::corrections(b, numbers, step, dtype);
  }
  Value update(RuleCall& call) const { return Moments::update(call); }
  double largest_change(const Bounds& bounds) const { return moments().largest_change(bounds); }

  Moments moments() const { return {b1, b2, eps}; }
};

}  // namespace pmaptrain::optimizers
