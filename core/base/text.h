// Small text utilities: joining, UTF-8, display width, nearest spelling, exact numbers.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pmaptrain {

std::string join(const std::vector<std::string>& parts, std::string_view separator);
// "a", "a or b", "a, b or c": with the word before the last part.
std::string listed(const std::vector<std::string>& parts, std::string_view word);
std::string listed(std::span<const std::int64_t> numbers, std::string_view word);

// The letters and digits of an ASCII word, in lower case: "LeakyReLU()" and "leaky_relu" have the same.
std::string letters_of(std::string_view word);
// Whether one of the names has the letters of `word`.
bool same_letters(std::string_view word, const std::vector<std::string>& names);

// The candidate of the same letters, else the one with the smallest Damerau-Levenshtein distance to `word`, at most a
// third of its length (but at least 1); empty if there is none.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// Whether `pattern` matches the whole of `text`; each * in it matches any characters.
bool matches(std::string_view pattern, std::string_view text);

// Whether `text` is well-formed UTF-8 (no overlong forms, no surrogates).
bool is_utf8(std::string_view text);

// Characters (code points) and terminal columns of well-formed UTF-8.
int count_characters(std::string_view text);
int display_width(std::string_view text);

// The shortest text that reads back as the same number, always with a '.' or an exponent (1.0, 1.0e-08), so that
// YAML 1.1 readers such as PyYAML also read a float. NaN and infinities print as .nan, .inf, -.inf.
std::string exact(double value);
std::string exact(float value);

// An argument as a shell reads it back, in quotes only where it needs them.
std::string shell_quoted(std::string_view argument);

// "1,234,567"
std::string with_commas(std::int64_t value);
// "1 step", "1,200 steps"; the plural adds an s.
std::string counted(std::int64_t count, std::string_view noun);
// "1.5 MiB", "832 B"
std::string human_bytes(double bytes);
// "1.23 GFLOP"
std::string human_flops(double flops);
template <std::integral T>
std::string human_bytes(T bytes) {
  return human_bytes(static_cast<double>(bytes));
}
// Four significant digits with an SI prefix from nano to tera: "14.92 ms", "303.8 GFLOP/s", "0 s".
std::string with_prefix(double value, std::string_view unit);

}  // namespace pmaptrain
