// The uses of the values of a program.
#pragma once

#include <cstddef>
#include <vector>

#include "core/graph/program.h"

namespace pmaptrain {

// The values that outputs and updates name, which no pass may remove.
inline std::vector<Value> yielded_by(const Program& program) {
  std::vector<Value> yielded;
  for (const Output& output : program.outputs) yielded.push_back(output.value);
  for (const Input& input : program.inputs) {
    if (input.next) yielded.push_back(*input.next);
  }
  return yielded;
}

// Counts how often equations, results of regions, outputs and updates name each value.
class Uses {
 public:
  explicit Uses(const Program& program) : by_value_(program.types.size()) {
    for_each_equation(program.equations, [&](const Equation& equation) {
      for (Value operand : equation.operands) add(operand);
      for (const Region& region : equation.regions) {
        for (Value result : region.results) add(result);
      }
    });
    for (const Output& output : program.outputs) add(output.value);
    for (const Input& input : program.inputs) {
      if (input.next) add(*input.next);
    }
  }
  int of(Value value) const { return by_value_[static_cast<std::size_t>(value.id)]; }

 private:
  void add(Value value) { ++by_value_[static_cast<std::size_t>(value.id)]; }

  std::vector<int> by_value_;
};

}  // namespace pmaptrain
