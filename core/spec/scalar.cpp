#include "core/spec/scalar.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>

namespace pmaptrain::spec {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }

struct Form {
  NumberError error = NumberError::not_a_number;
  bool whole = false;  // digits only
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
  bool whole = true;
  if (i < rest.size() && rest[i] == '.') {
    whole = false;
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
    if (j > start) {
      i = j;
      whole = false;
    }
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
  form.whole = whole;
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

Number<std::int64_t> parse_integer(std::string_view text) {
  const Form form = form_of(text);
  if (form.error != NumberError::none) return {0, form.error};
  if (form.whole) {
    std::int64_t value = 0;
    const std::string signed_text = (form.negative ? "-" : "") + std::string(form.unsigned_text);
    const auto result = std::from_chars(signed_text.data(), signed_text.data() + signed_text.size(), value);
    if (result.ec != std::errc{}) return {0, NumberError::overflow};
    return {value, NumberError::none};
  }
  const Number<double> number = parse_double(form);
  if (number.error == NumberError::underflow) return {0, NumberError::fraction};
  if (!number.ok()) return {0, number.error};
  if (std::fpclassify(number.value - std::trunc(number.value)) != FP_ZERO) return {0, NumberError::fraction};
  // Beyond 2^53 a double no longer names one whole number.
  if (std::abs(number.value) > 9007199254740992.0) return {0, NumberError::overflow};
  return {static_cast<std::int64_t>(number.value), NumberError::none};
}

Number<std::uint64_t> parse_seed(std::string_view text) {
  const Form form = form_of(text);
  if (form.error == NumberError::none && form.whole && !form.negative) {
    std::uint64_t value = 0;
    const char* end = form.unsigned_text.data() + form.unsigned_text.size();
    if (std::from_chars(form.unsigned_text.data(), end, value).ec != std::errc{}) return {0, NumberError::overflow};
    return {value, NumberError::none};
  }
  const Number<std::int64_t> number = parse_integer(text);
  if (!number.ok()) return {0, number.error};
  if (number.value < 0) return {0, NumberError::overflow};
  return {static_cast<std::uint64_t>(number.value), NumberError::none};
}

std::optional<bool> parse_boolean(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

}  // namespace pmaptrain::spec
