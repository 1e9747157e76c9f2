// Checks durations, intervals and amounts: a count and its unit.
#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/hints.h"
#include "core/base/text.h"
#include "core/spec/types/leaf.h"
#include "core/spec/types/takes.h"
#include "core/spec/yaml/report.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

bool is_one(std::string_view word, const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

class DurationLeaf {
 public:
  DurationLeaf(const Key& key, const Reporter& reporter) : key_(key), reporter_(reporter) {}

  Node check(const Node& value) const {
    const bool never = key_.type == Type::interval;
    if (!value.is(Kind::scalar)) return wrong(value);
    if (never && value.text == "never") return value;
    const std::string& text = value.text;
    std::size_t split = 0;
    while (split < text.size() && std::string_view("0123456789.+-eE_").find(text[split]) != std::string_view::npos) {
      // The e of "5 epochs" and "5epochs" begins the unit.
      if ((text[split] == 'e' || text[split] == 'E') &&
          (split + 1 == text.size() ||
           std::string_view("0123456789+-").find(text[split + 1]) == std::string_view::npos)) {
        break;
      }
      ++split;
    }
    const std::string digits = text.substr(0, split);
    std::size_t begin = split;
    while (begin < text.size() && text[begin] == ' ') ++begin;
    std::string unit = text.substr(begin);
    if (unit.empty() && key_.type == Type::amount) unit = "examples";
    if (unit.empty() && key_.steps) unit = "steps";
    const std::vector<std::string> units = units_of(key_);
    const bool known = is_one(unit, units);
    if (digits.empty()) {
      const std::string near = never ? nearest(text, {"never"}) : std::string{};
      return near.empty() ? wrong(value) : misspelt(value, near);
    }
    const auto count = parse_integer(digits);
    if (!known) {
      return unknown_unit(value, digits, unit);
    }
    if (count.error == NumberError::fraction) {
      return reporter_.report(value, std::string(key_.name()) + " '" + text + "' is not a whole number of " + unit,
                              unit.starts_with("epoch") ? "count steps or examples instead" : "write an integer");
    }
    if (!count.ok()) return wrong(value);
    if (count.value < 1 || static_cast<double>(count.value) > largest_integer) {
      return reporter_.report(
          value, std::string(key_.name()) + " '" + text + "' must be at least 1 and at most 1,000,000,000,000",
          never ? "'never' disables it" : "");
    }
    const std::string written = in_units(std::to_string(count.value), unit, units);
    if (!has_usual_exponent(digits)) {
      return reporter_.report(value,
                              std::string(key_.name()) + " '" + text + "' has an exponent that is not from 0 to " +
                                  std::to_string(largest_exponent),
                              "write " + written);
    }
    Node result = value;
    result.text = written;
    return result;
  }

 private:
  // Of a well-formed number.
  static bool has_usual_exponent(std::string_view number) {
    const std::size_t mark = number.find_first_of("eE");
    if (mark == std::string_view::npos) return true;
    number.remove_prefix(number[mark + 1] == '+' ? mark + 2 : mark + 1);
    int exponent = 0;
    const auto result = std::from_chars(number.data(), number.data() + number.size(), exponent);
    return result.ec == std::errc{} && !number.starts_with('-') && exponent <= largest_exponent;
  }

  // "1 step", "12 steps". The units are listed in pairs of singular and plural.
  static std::string in_units(const std::string& count, std::string_view unit, const std::vector<std::string>& units) {
    const auto pair = (std::find(units.begin(), units.end(), unit) - units.begin()) / 2 * 2;
    return count + " " + units[static_cast<std::size_t>(pair + (count == "1" ? 0 : 1))];
  }

  // "12s", "30 minuts"; of time, where steps are counted.
  Node unknown_unit(const Node& value, const std::string& count, const std::string& unit) const {
    const std::vector<std::string> units = units_of(key_);
    const std::optional<Hint> hint = hint_for("duration", unit);
    const std::string meant = hint ? std::string(hint->meant) : nearest(unit, units);
    if (is_one(meant, units)) return misspelt(value, in_units(count, meant, units));
    const std::string refused = std::string(key_.name()) + " takes " + takes(key_) + ", not " + describe(value);
    if (hint && !hint->is_supported()) return reporter_.report(value, refused, hint->help);
    const bool is_time = is_one(hint ? meant : unit, {"second", "seconds", "minute", "minutes", "hour", "hours"});
    return is_time ? reporter_.report(value, refused, "train.max_time limits the time of a run") : wrong(value);
  }

  Node wrong(const Node& value) const { return wrong_value(key_, value, reporter_); }
  Node misspelt(const Node& value, const std::string& near) const {
    return misspelt_value(key_, value, near, reporter_);
  }

  const Key& key_;
  const Reporter& reporter_;
};

}  // namespace

Node check_duration(const Key& key, const Node& value, const Reporter& reporter) {
  return DurationLeaf(key, reporter).check(value);
}

}  // namespace pmaptrain::spec
