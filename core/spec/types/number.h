// Integers, seeds and numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/text.h"
#include "core/spec/types/key.h"
#include "core/spec/types/takes.h"

namespace pmaptrain::spec {

template <>
struct Takes<std::int64_t> {
  static constexpr const Type& type = Type::integer;
  static void store(const Node& value, std::int64_t& out) { out = parsed_as<std::int64_t>(value); }
  static std::string written(std::int64_t value) { return std::to_string(value); }
};

// first, last, or an index.
template <>
struct Takes<declare::Position> {
  static constexpr const Type& type = Type::integer;
  static void store(const Node& value, declare::Position& out) {
    out = {value.parsed.has_value() ? parsed_as<std::int64_t>(value) : 0, value.text == "last"};
  }
};

template <>
struct Takes<int> {
  static constexpr const Type& type = Type::integer;
  static void store(const Node& value, int& out) { out = static_cast<int>(parsed_as<std::int64_t>(value)); }
  static std::string written(int value) { return std::to_string(value); }
};

// A count; none for `auto`.
template <>
struct Takes<std::optional<int>> {
  static constexpr const Type& type = Type::integer;
  static void store(const Node& value, std::optional<int>& out) {
    out.reset();
    if (value.text != "auto") out = static_cast<int>(parsed_as<std::int64_t>(value));
  }
};

template <>
struct Takes<std::optional<std::int64_t>> {
  static constexpr const Type& type = Type::integer;
  static void store(const Node& value, std::optional<std::int64_t>& out) {
    out.reset();
    if (value.text != "auto") out = parsed_as<std::int64_t>(value);
  }
};

template <>
struct Takes<std::uint64_t> {
  static constexpr const Type& type = Type::seed;
  static void store(const Node& value, std::uint64_t& out) { out = parsed_as<std::uint64_t>(value); }
  static std::string written(std::uint64_t value) { return std::to_string(value); }
};

template <>
struct Takes<double> {
  static constexpr const Type& type = Type::number;
  static void store(const Node& value, double& out) { out = parsed_as<double>(value); }
  static std::string written(double value) { return exact(value); }
};

// Check a value as one of a key of type integer, or number, with the range of `key`, whatever its type is.
Node check_integer(const Key& key, const Node& value, const Reporter& reporter);
Node check_number(const Key& key, const Node& value, const Reporter& reporter);

}  // namespace pmaptrain::spec
