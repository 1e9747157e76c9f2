#include "core/spec/types/schema_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cstdint>

#include "core/base/text.h"

namespace pmaptrain::spec::schema {
namespace {

// A bound as an integer if it is one.
std::string bound(double value) {
  const auto whole = static_cast<std::int64_t>(std::clamp(value, -1e15, 1e15));
  const bool is_whole = !(static_cast<double>(whole) < value) && !(static_cast<double>(whole) > value);
  return is_whole ? std::to_string(whole) : fmt::format("{}", value);
}

std::string range(std::string_view type, const Key& key, double limit) {
  return fmt::format(R"({{"type": "{}", "{}": {}, "{}": {}}})", type, key.open_low ? "exclusiveMinimum" : "minimum",
                     bound(std::max(key.low, -limit)), key.open_high ? "exclusiveMaximum" : "maximum",
                     bound(std::min(key.high, limit)));
}

}  // namespace

std::string string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string any_of(const std::vector<std::string>& alternatives) {
  return fmt::format(R"({{"anyOf": [{}]}})", join(alternatives, ", "));
}

std::string list_of(const std::string& items, std::size_t least, std::size_t most) {
  return fmt::format(R"({{"type": "array", "items": {}{}{}}})", items,
                     least > 0 ? fmt::format(R"(, "minItems": {})", least) : "",
                     most > 0 ? fmt::format(R"(, "maxItems": {})", most) : "");
}

std::string pair_of(const std::string& first, const std::string& second) {
  return fmt::format(R"({{"type": "array", "prefixItems": [{}, {}], "minItems": 2, "maxItems": 2}})", first, second);
}

std::string words(const std::vector<std::string>& all) {
  std::vector<std::string> strings;
  strings.reserve(all.size());
  for (const std::string& word : all) strings.push_back(schema::string(word));
  return fmt::format(R"({{"enum": [{}]}})", join(strings, ", "));
}

std::string text() { return R"({"type": ["string", "number", "boolean"], "minLength": 1})"; }

std::string integer(const Key& key) { return range("integer", key, largest_integer); }

// Parameters and data are float32.
std::string number(const Key& key) { return range("number", key, static_cast<double>(FLT_MAX)); }

}  // namespace pmaptrain::spec::schema
