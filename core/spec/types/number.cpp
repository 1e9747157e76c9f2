#include "core/spec/types/number.h"

#include <algorithm>
#include <limits>

#include "core/base/text.h"
#include "core/spec/types/leaf.h"
#include "core/spec/types/schema_text.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

// Reports a scalar that is not a valid number.
Node bad_number(const Key& key, const Node& value, NumberError error, const Reporter& reporter) {
  const std::string& text = value.text;
  const std::string said = std::string(key.name()) + " " + text;
  switch (error) {
    case NumberError::octal: {
      const std::size_t start = text.find_first_of("123456789");
      const bool leading_zero = text.find_first_not_of("+-0123456789.eE") == std::string::npos;
      return reporter.report(value, said + ": octal, hexadecimal and binary numbers are not supported",
                             leading_zero && start != std::string::npos
                                 ? "if a decimal number is meant, write " + text.substr(start)
                                 : "write it as a decimal number");
    }
    case NumberError::underscore: {
      std::string clean = text;
      std::erase(clean, '_');
      return reporter.report(value, said + ": underscores in numbers are not supported", "write " + clean);
    }
    case NumberError::not_finite:
      return reporter.report(value, said + ": NaN and infinity are not allowed", "it takes " + takes(key));
    case NumberError::underflow:
      return reporter.report(value, said + " underflows to 0 in float32",
                             "the smallest float32 is about 1.5e-45; write 0.0 for zero");
    case NumberError::overflow:
      return reporter.report(value, said + " is too large", "the largest float32 is about 3.4e38");
    default: return wrong_value(key, value, reporter);
  }
}

std::string integer_text(const Key& key) {
  std::string text = "an integer" + range_of(key, true);
  for (const std::string& word : key.words) text += " or '" + word + "'";
  return text;
}

std::string integer_schema(const Key& key, Definitions& /*named*/) {
  return key.words.empty() ? schema::integer(key) : schema::any_of({schema::integer(key), schema::words(key.words)});
}

std::string seed_text(const Key& /*key*/) { return "an integer from 0 to 18446744073709551615"; }

std::string seed_schema(const Key& /*key*/, Definitions& /*named*/) {
  return R"({"type": "integer", "minimum": 0, "maximum": )" +
         std::to_string(std::numeric_limits<std::uint64_t>::max()) + "}";
}

Node check_seed(const Key& key, const Node& value, const Reporter& reporter) {
  if (!value.is(Kind::scalar) || value.quoted) return wrong_value(key, value, reporter);
  const auto number = parse_seed(value.text);
  if (number.error == NumberError::overflow) return wrong_value(key, value, reporter);
  if (!number.ok()) return bad_number(key, value, number.error, reporter);
  return with_value(value, std::to_string(number.value), number.value);
}

std::string number_text(const Key& key) { return "a number" + range_of(key, false); }

std::string number_schema(const Key& key, Definitions& /*named*/) { return schema::number(key); }

}  // namespace

constinit const Type Type::integer{integer_text, integer_schema, check_integer};
constinit const Type Type::seed{seed_text, seed_schema, check_seed};
constinit const Type Type::number{number_text, number_schema, check_number};

Node check_integer(const Key& key, const Node& value, const Reporter& reporter) {
  if (value.is(Kind::scalar) && has_word(key.words, value.text)) return value;
  if (!value.is(Kind::scalar) || value.quoted) return wrong_value(key, value, reporter);
  const auto number = parse_integer(value.text);
  const bool beyond = number.error == NumberError::overflow;
  if (!number.ok() && !beyond) {
    if (number.error == NumberError::not_a_number && !key.words.empty()) {
      const std::string near = nearest(value.text, key.words);
      if (!near.empty()) return misspelt_value(key, value, near, reporter);
    }
    return bad_number(key, value, number.error, reporter);
  }
  const auto wide = static_cast<double>(number.value);
  if (beyond ? value.text.starts_with('-') : wide < key.low) return wrong_value(key, value, reporter);
  if (beyond || wide > key.high) {
    if (key.high < largest_integer) return wrong_value(key, value, reporter);
    return reporter.report(value, std::string(key.name()) + " " + value.text + " is too large",
                           "the largest is " + with_commas(static_cast<std::int64_t>(key.high)));
  }
  return with_value(value, std::to_string(number.value), number.value);
}

Node check_number(const Key& key, const Node& value, const Reporter& reporter) {
  if (!value.is(Kind::scalar) || value.quoted) return wrong_value(key, value, reporter);
  const auto number = parse_number(value.text);
  if (!number.ok()) return bad_number(key, value, number.error, reporter);
  const double x = number.value;
  if (x < key.low || x > key.high || (key.open_low && !(x > key.low)) || (key.open_high && !(x < key.high))) {
    return wrong_value(key, value, reporter);
  }
  return with_value(value, exact(x), x);
}

}  // namespace pmaptrain::spec
