// Derivatives against central differences, on several logical devices.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/graph/builder.h"

namespace pmaptrain::test {

// Floating inputs are uniform in [low, high) and differentiated; integer ones are uniform in [0, below).
struct GradientInputs {
  std::vector<Type> types;
  double low = -2;
  double high = 2;
  std::int64_t below = 3;
  std::uint64_t seed = 0;
};

// Builds a function of the inputs whose result is f64 of any shape and set.
using BuildFunction = std::function<Value(Builder& b, std::span<const Value> inputs)>;

// Compares, for every floating input, the gradient of the sum of weights · result over the distinct values of the
// result (one for each combination of coordinates that its set tells apart) with central differences that perturb one
// element of one distinct value of one input at a time. Also checks the program's types. Fails the test with the
// first element that differs. Returns the names of the ops that `build` emitted, for tests that count them.
std::vector<std::string> check_gradient(const Mesh& mesh, const GradientInputs& inputs, const BuildFunction& build);

}  // namespace pmaptrain::test
