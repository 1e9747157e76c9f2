// Adam (moments.h has its equations).
#pragma once

#include "core/optimizers/moments.h"

namespace pmaptrain::optimizers {

struct Adam {
  double b1 = 0.9, b2 = 0.999, eps = 1e-8;

  static declare::Declaration<Adam> declaration() {
    return declare::kind<Adam>(
        {.path = "adam", .meaning = "Adam.", .example = "adam: {b1: 0.9, b2: 0.999, eps: 1.0e-8}"}, b1_of(&Adam::b1),
        b2_of(&Adam::b2), eps_of(&Adam::eps, "eps: 1.0e-8"));
  }

  std::vector<SlotKind> slots() const { return Moments::slots("adam"); }
  std::vector<Number> numbers(DType dtype) const { return moments().numbers(dtype); }
  BiasCorrections corrections(Builder& b, const Numbers& numbers, Value step, DType dtype) const {
    return Moments::corrections(b, numbers, step, dtype);
  }
  Value update(RuleCall& call) const { return Moments::update(call); }
  double largest_change(const Bounds& bounds) const { return moments().largest_change(bounds); }

  Moments moments() const { return {b1, b2, eps}; }
};

}  // namespace pmaptrain::optimizers
