// Durations, intervals and amounts: a count and its unit.
#pragma once

#include <string>
#include <vector>

#include "core/spec/spec.h"
#include "core/spec/types/key.h"
#include "core/spec/types/takes.h"

namespace pmaptrain::spec {

// The units of a duration or amount, in pairs of singular and plural: "step", "steps", ...
std::vector<std::string> units_of(const Key& key);

// What a number without a unit counts, for help; empty for values that need a unit.
std::string bare_number_text(const Key& key);

template <>
struct Takes<Duration> {
  static constexpr const Type& type = Type::duration;
  static void store(const Node& value, Duration& out);
};

template <>
struct Takes<Interval> {
  static constexpr const Type& type = Type::interval;
  static void store(const Node& value, Interval& out);
};

template <>
struct Takes<Timeout> {
  static constexpr const Type& type = Type::interval;
  static void store(const Node& value, Timeout& out);
};

template <>
struct Takes<Amount> {
  static const Type type;
  static void store(const Node& value, Amount& out);
};

template <>
struct Takes<std::vector<Duration>> {
  static const Type type;
  static void store(const Node& value, std::vector<Duration>& out);
};

template <>
struct Takes<std::vector<declare::Scale>> {
  static constexpr const Type& type = Type::scales;
  static void store(const Node& value, std::vector<declare::Scale>& out);
};

// A checked duration with the place of `where`.
Node steps_at(const Node& where, std::int64_t steps);

}  // namespace pmaptrain::spec
