// Lists of numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/spec/spec.h"
#include "core/spec/types/takes.h"

namespace pmaptrain::spec {

// Key::length integers; 0: any number of them.
template <>
struct Takes<std::vector<std::int64_t>> {
  static const Type type;
  static void store(const Node& value, std::vector<std::int64_t>& out);
  static std::string written(const std::vector<std::int64_t>& values);
};

// Numbers, or one, or one of Key::words.
struct TakesNumbers {
  static const Type type;
};

template <>
struct Takes<std::vector<double>> : TakesNumbers {
  static void store(const Node& value, std::vector<double>& out);
};

// The same, not all 0.
template <>
struct Takes<declare::ClassWeights> {
  static const Type type;
  static void store(const Node& value, declare::ClassWeights& out);
};

// Two numbers, the least first.
template <>
struct Takes<declare::Range> {
  static const Type type;
  static void store(const Node& value, declare::Range& out);
  static std::string written(const declare::Range& range);
};

// The same, or a single number of at least 0.
template <>
struct Takes<declare::Spread> {
  static const Type type;
  static void store(const Node& value, declare::Spread& out);
  static std::string written(const declare::Spread& spread);
};

// A list of examples, each a list of numbers.
template <>
struct Takes<std::vector<std::vector<double>>> {
  static const Type type;
  static void store(const Node& value, std::vector<std::vector<double>>& out);
};

}  // namespace pmaptrain::spec
