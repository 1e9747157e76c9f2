#include "core/spec/yaml/scalar.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "core/base/utf8.h"

namespace pmaptrain::spec {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }

struct Form {
  NumberError error = NumberError::not_a_number;
  std::string_view unsigned_text;
  bool negative = false;
};

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
Form form_of(std::string_view text) {
  Form form;
  std::string_view rest = text;
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
    form.negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  form.unsigned_text = rest;
  if (rest.empty()) return form;
  for (std::string_view word : {".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "nan", "NaN", "inf", "infinity"}) {
    if (rest == word) {
      form.error = NumberError::not_finite;
      return form;
    }
  }
  std::size_t i = 0;
  while (i < rest.size() && digit(rest[i])) ++i;
  const std::size_t leading = i;
  bool digits = i > 0;
  if (i < rest.size() && rest[i] == '.') {
    ++i;
    const std::size_t start = i;
    while (i < rest.size() && digit(rest[i])) ++i;
    digits = digits || i > start;
  }
  if (digits && i < rest.size() && (rest[i] == 'e' || rest[i] == 'E')) {
    std::size_t j = i + 1;
    if (j < rest.size() && (rest[j] == '-' || rest[j] == '+')) ++j;
    const std::size_t start = j;
    while (j < rest.size() && digit(rest[j])) ++j;
    if (j > start) i = j;
  }
  if (i != rest.size() || !digits) {
    if (rest.size() > 2 && rest[0] == '0' && std::string_view("xXoObB").find(rest[1]) != std::string_view::npos) {
      form.error = NumberError::octal;
    } else if (digit(rest[0]) && rest.find('_') != std::string_view::npos &&
               rest.find_first_not_of("0123456789_.") == std::string_view::npos) {
      form.error = NumberError::underscore;
    }
    return form;
  }
  // 010 is eight to some readers and ten to others.
  if (leading > 1 && rest[0] == '0') {
    form.error = NumberError::octal;
    return form;
  }
  form.error = NumberError::none;
  return form;
}

Number<double> parse_double(const Form& form) {
  double value = 0.0;
  const char* end = form.unsigned_text.data() + form.unsigned_text.size();
  const auto result = std::from_chars(form.unsigned_text.data(), end, value);
  if (result.ec == std::errc::result_out_of_range) {
    // from_chars does not say which end of the range; the sign of the exponent does.
    const bool small = form.unsigned_text.find("e-") != std::string_view::npos ||
                       form.unsigned_text.find("E-") != std::string_view::npos ||
                       form.unsigned_text.starts_with("0.") || form.unsigned_text.starts_with('.');
    return {0.0, small ? NumberError::underflow : NumberError::overflow};
  }
  if (result.ec != std::errc{} || result.ptr != end) return {0.0, NumberError::not_a_number};
  return {form.negative ? -value : value, NumberError::none};
}

// The digits of the integer that a well-formed text such as 1.28e2 writes, exactly: "128".
Number<std::string> whole_digits(const Form& form) {
  const std::size_t mark = std::min(form.unsigned_text.find_first_of("eE"), form.unsigned_text.size());
  std::string digits(form.unsigned_text.substr(0, mark));
  const std::size_t point = digits.find('.');
  std::int64_t fraction = 0;  // number of digits after the point
  if (point != std::string::npos) {
    fraction = static_cast<std::int64_t>(digits.size() - point - 1);
    digits.erase(point, 1);
  }
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty()) return {"0", NumberError::none};
  while (digits.back() == '0') {
    digits.pop_back();
    --fraction;
  }
  if (mark < form.unsigned_text.size()) {
    std::string_view exponent = form.unsigned_text.substr(mark + 1);
    if (exponent.starts_with('+')) exponent.remove_prefix(1);
    std::int64_t power = 0;
    const auto result = std::from_chars(exponent.data(), exponent.data() + exponent.size(), power);
    const bool huge = result.ec != std::errc{} || power > 1'000'000'000 || power < -1'000'000'000;
    if (huge) return {"", exponent.starts_with('-') ? NumberError::fraction : NumberError::overflow};
    fraction -= power;
  }
  if (fraction > 0) return {"", NumberError::fraction};
  if (-fraction > std::numeric_limits<std::uint64_t>::digits10) return {"", NumberError::overflow};
  return {digits + std::string(static_cast<std::size_t>(-fraction), '0'), NumberError::none};
}

template <class T>
Number<T> parse_whole(std::string_view text) {
  const Form form = form_of(text);
  if (form.error != NumberError::none) return {0, form.error};
  const Number<std::string> digits = whole_digits(form);
  if (!digits.ok()) return {0, digits.error};
  if (digits.value == "0") return {0, NumberError::none};
  const std::string signed_text = (form.negative ? "-" : "") + digits.value;
  T value = 0;
  const auto result = std::from_chars(signed_text.data(), signed_text.data() + signed_text.size(), value);
  return result.ec == std::errc{} ? Number<T>{value, NumberError::none} : Number<T>{0, NumberError::overflow};
}

}  // namespace

Number<double> parse_number(std::string_view text) {
  const Form form = form_of(text);
  if (form.error != NumberError::none) return {0.0, form.error};
  Number<double> number = parse_double(form);
  if (!number.ok()) return number;
  if (std::abs(number.value) > static_cast<double>(std::numeric_limits<float>::max())) {
    return {0.0, NumberError::overflow};
  }
  if (std::fpclassify(number.value) != FP_ZERO && std::fpclassify(static_cast<float>(number.value)) == FP_ZERO) {
    return {0.0, NumberError::underflow};
  }
  return number;
}

Number<std::int64_t> parse_integer(std::string_view text) { return parse_whole<std::int64_t>(text); }

Number<std::uint64_t> parse_seed(std::string_view text) { return parse_whole<std::uint64_t>(text); }

std::optional<std::size_t> parse_memory(std::string_view text) {
  constexpr std::size_t most = 999'999;
  std::size_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc{} || text.front() == '0' || count > most) return std::nullopt;
  std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit == "MiB") return count << 20;
  if (unit == "GiB") return count << 30;
  if (unit == "TiB") return count << 40;
  return std::nullopt;
}

std::optional<bool> parse_boolean(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

bool has_invisible(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Character c = utf8_at(text, i);
    const bool control = c.code < 0x20 || (c.code >= 0x7F && c.code < 0xA0);
    const bool direction = c.code == 0x061C || c.code == 0x200E || c.code == 0x200F ||
                           (c.code >= 0x202A && c.code <= 0x202E) || (c.code >= 0x2066 && c.code <= 0x2069);
    if (control || direction || !c.well_formed) return true;
    i += c.bytes;
  }
  return false;
}

bool is_identifier(std::string_view text) {
  constexpr std::string_view characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') &&
         text.find_first_not_of(characters) == std::string_view::npos;
}

}  // namespace pmaptrain::spec
