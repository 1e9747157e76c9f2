// What the text of a scalar is as a number or truth value: YAML 1.2's core schema, without its octal and hexadecimal
// forms, its NaN and its infinities.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pmaptrain::spec {

enum class NumberError {
  none,
  not_a_number,
  fraction,    // a number, but not a whole one
  octal,       // 010, 0o10, 0x1f, 0b1: readers disagree about them
  underscore,  // 1_000
  not_finite,  // .nan, .inf
  underflow,   // not zero, but zero as float32
  overflow,    // beyond float32, or beyond 64 bits for an integer
};

template <class T>
struct Number {
  T value{};
  NumberError error = NumberError::none;
  bool ok() const { return error == NumberError::none; }
};

// A number that survives in float32, kept as double.
Number<double> parse_number(std::string_view text);
// An integer; 1e3 and 8.0 are integers.
Number<std::int64_t> parse_integer(std::string_view text);
// An integer from 0 to 2^64 - 1.
Number<std::uint64_t> parse_seed(std::string_view text);
// true, True, TRUE, false, False, FALSE.
std::optional<bool> parse_boolean(std::string_view text);

}  // namespace pmaptrain::spec
