#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstddef>

#include "core/base/utf8.h"

namespace pmaptrain {
namespace {

// Damerau-Levenshtein distance in its restricted form: no pair of neighbours is exchanged twice. Over bytes, since
// names that people misspell here are ASCII.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({replace, previous[j] + 1, current[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before[j - 2] + 1);
      }
    }
    before.swap(previous);
    previous.swap(current);
  }
  return previous[b.size()];
}

template <class T>
std::string exact_of(T value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  // to_chars omits what YAML 1.1 readers insist on: a point, also before an exponent.
  const std::size_t exponent = text.find('e');
  const std::size_t digits = exponent == std::string::npos ? text.size() : exponent;
  if (text.find('.') == std::string::npos) text.insert(digits, ".0");
  return text;
}

}  // namespace

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

std::string listed(const std::vector<std::string>& parts, std::string_view word) {
  if (parts.size() < 2) return join(parts, "");
  const std::vector<std::string> before(parts.begin(), parts.end() - 1);
  return join(before, ", ") + " " + std::string(word) + " " + parts.back();
}

std::string listed(std::span<const std::int64_t> numbers, std::string_view word) {
  std::vector<std::string> parts;
  parts.reserve(numbers.size());
  for (const std::int64_t number : numbers) parts.push_back(std::to_string(number));
  return listed(parts, word);
}

std::string letters_of(std::string_view word) {
  std::string letters;
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) letters += static_cast<char>(std::tolower(byte));
  }
  return letters;
}

bool same_letters(std::string_view word, const std::vector<std::string>& names) {
  const std::string letters = letters_of(word);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return letters_of(name) == letters; });
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() < 2) return "";  // every letter is one change from every other
  const std::string letters = letters_of(word);
  const auto same = std::find_if(candidates.begin(), candidates.end(),
                                 [&](const std::string& candidate) { return letters_of(candidate) == letters; });
  if (same != candidates.end() && !letters.empty()) return *same;
  const std::size_t limit = std::max<std::size_t>(1, word.size() / 3);
  std::string best;
  std::size_t best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t length_difference =
        std::max(candidate.size(), word.size()) - std::min(candidate.size(), word.size());
    if (length_difference >= best_distance) continue;
    if (const std::size_t d = distance(word, candidate); d < best_distance) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

bool matches(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  // Each part between two stars is taken where it first occurs, which leaves most for those that follow.
  for (std::size_t next = pattern.find('*'); next != std::string_view::npos; next = pattern.find('*')) {
    const std::size_t found = text.find(pattern.substr(0, next));
    if (found == std::string_view::npos) return false;
    text.remove_prefix(found + next);
    pattern.remove_prefix(next + 1);
  }
  return text.ends_with(pattern);
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Character character = utf8_at(text, i);
    if (!character.well_formed) return false;
    i += character.bytes;
  }
  return true;
}

int count_characters(std::string_view text) {
  int count = 0;
  for (std::size_t i = 0; i < text.size(); i += utf8_at(text, i).bytes) ++count;
  return count;
}

int display_width(std::string_view text) {
  int width = 0;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Character character = utf8_at(text, i);
    width += display_width(character.code);
    i += character.bytes;
  }
  return width;
}

std::string exact(double value) { return exact_of(value); }
std::string exact(float value) { return exact_of(value); }

std::string with_commas(std::int64_t value) {
  std::string text = std::to_string(value);
  const std::size_t sign = value < 0 ? 1 : 0;
  for (std::size_t i = text.size(); i > sign + 3;) {
    i -= 3;
    text.insert(i, ",");
  }
  return text;
}

std::string counted(std::int64_t count, std::string_view noun) {
  return with_commas(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string human_bytes(double bytes) {
  constexpr std::array<std::string_view, 7> units{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  // 1023.95 would round to 1024.0 of the smaller unit.
  while (unit + 1 < units.size() && std::abs(bytes) >= (unit == 0 ? 1023.5 : 1023.95)) {
    bytes /= 1024;
    ++unit;
  }
  std::array<char, 64> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), bytes, std::chars_format::fixed, unit == 0 ? 0 : 1)
          .ptr;
  return std::string(buffer.data(), end) + " " + std::string(units[unit]);
}

std::string human_flops(double flops) {
  constexpr std::array<std::string_view, 6> units{"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"};
  std::size_t unit = 0;
  for (; flops >= 1000 && unit + 1 < units.size(); ++unit) flops /= 1000;
  std::array<char, 64> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), flops, std::chars_format::general, 3).ptr;
  return std::string(buffer.data(), end) + " " + std::string(units[unit]);
}

std::string with_prefix(double value, std::string_view unit) {
  constexpr std::array<std::string_view, 8> prefixes{"n", "µ", "m", "", "k", "M", "G", "T"};
  std::size_t prefix = 3;
  // 999.96 would round to 1000 of the smaller one.
  while (prefix + 1 < prefixes.size() && std::abs(value) >= 999.95) {
    value /= 1000;
    ++prefix;
  }
  while (prefix > 0 && value != 0 && std::abs(value) < 0.99995) {
    value *= 1000;
    --prefix;
  }
  std::array<char, 64> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::general, 4).ptr;
  return std::string(buffer.data(), end) + " " + std::string(prefixes[prefix]) + std::string(unit);
}

std::string shell_quoted(std::string_view argument) {
  const bool plain = !argument.empty() && std::all_of(argument.begin(), argument.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./=:,+@%").find(c) != std::string_view::npos;
  });
  if (plain) return std::string(argument);
  std::string out = "'";
  for (const char c : argument) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace pmaptrain
