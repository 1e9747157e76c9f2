// Parses scalars as numbers and booleans by the core schema of YAML 1.2, without octal and hexadecimal numbers, NaN and
// infinities; and what texts and names may not have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pmaptrain::spec {

enum class NumberError {
  none,
  not_a_number,
  fraction,    // a number, but not an integer
  octal,       // 010, 0o10, 0x1f, 0b1: YAML readers interpret them differently
  underscore,  // 1_000
  not_finite,  // .nan, .inf
  underflow,   // not zero, but rounds to zero in float32
  overflow,    // too large for float32, or for 64 bits (integers)
};

template <class T>
struct Number {
  T value{};
  NumberError error = NumberError::none;
  bool ok() const { return error == NumberError::none; }
};

// A number in the range of float32, as double.
Number<double> parse_number(std::string_view text);
// An integer; 1e3 and 8.0 are integers.
Number<std::int64_t> parse_integer(std::string_view text);
// An integer from 0 to 2^64 - 1.
Number<std::uint64_t> parse_seed(std::string_view text);
// The bytes of "80GiB" or "512 MiB"; also of TiB. None for anything else, and for nothing.
std::optional<std::size_t> parse_memory(std::string_view text);
// true, True, TRUE, false, False, FALSE.
std::optional<bool> parse_boolean(std::string_view text);

// Whether a text has control characters, bidirectional marks or bytes that are no UTF-8.
bool has_invisible(std::string_view text);
// Whether it is a valid name of an axis or a layer.
bool is_identifier(std::string_view text);

}  // namespace pmaptrain::spec
