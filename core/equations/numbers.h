// Numbers of the config as inputs of a program.
//
// They are inputs, not constants, so that the members of an ensemble share one program and have different numbers. If
// an equation needs a function of a number (1 - rate, log decay), the host computes it in double, and the result is
// another Number.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/graph/builder.h"

namespace pmaptrain::equations {

// An input of the group hyper: a scalar.
struct Number {
  std::string name;  // of the input: "dropout/dropout_0/rate", "b1"
  double value = 0;
  DType dtype = DType::f32;
};

// Declares the numbers as inputs.
std::vector<Value> declare_numbers(Builder& b, std::span<const Number> numbers);

// The values of numbers in a program, or in a region of it, by name.
class Numbers {
 public:
  Numbers() = default;
  // `values` are in the order of `numbers`.
  Numbers(std::span<const Number> numbers, std::span<const Value> values);
  Value operator[](const std::string& name) const { return values_.at(name); }

 private:
  std::map<std::string, Value> values_;
};

}  // namespace pmaptrain::equations
