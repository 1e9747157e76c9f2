#include "core/spec/types/duration.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "core/hints/hints.h"
#include "core/spec/types/leaf.h"
#include "core/spec/types/number.h"
#include "core/spec/types/schema_text.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

// The largest exponent that a count of steps, epochs or examples is written with, so that a pattern can say which are
// whole.
constexpr int largest_exponent = 12;

// The parsed form of a duration, an interval or an amount. `unit` is empty for a number of batches.
struct Count {
  std::int64_t count = 0;
  std::optional<Unit> unit;
};

// The unit with this name, in singular or plural.
std::optional<Unit> unit_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Unit>, 6> units = {{{"step", Unit::steps},
                                                                       {"epoch", Unit::epochs},
                                                                       {"example", Unit::examples},
                                                                       {"second", Unit::seconds},
                                                                       {"minute", Unit::minutes},
                                                                       {"hour", Unit::hours}}};
  for (const auto& [unit, meant] : units) {
    if (name.starts_with(unit)) return meant;
  }
  return std::nullopt;
}

bool is_one(std::string_view word, const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

class CountCheck {
 public:
  CountCheck(const Key& key, const Reporter& reporter) : key_(key), reporter_(reporter) {}

  Node check(const Node& value) const {
    const bool never = key_.type == Type::interval;
    if (!value.is(Kind::scalar)) return wrong(value);
    if ((never && value.text == "never") || is_one(value.text, key_.words)) return value;
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
    if (unit.empty() && key_.type == Takes<Amount>::type) unit = "examples";
    if (unit.empty() && key_.steps) unit = "steps";
    const std::vector<std::string> units = units_of(key_);
    const bool known = is_one(unit, units);
    if (digits.empty()) {
      std::vector<std::string> known_words = key_.words;
      if (never) known_words.emplace_back("never");
      const std::string near = nearest(text, known_words);
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
    const int least = key_.or_zero ? 0 : 1;
    if (count.value < least || static_cast<double>(count.value) > largest_integer) {
      return reporter_.report(value,
                              std::string(key_.name()) + " '" + text + "' must be at least " + std::to_string(least) +
                                  " and at most 1,000,000,000,000",
                              never                 ? "'never' disables it"
                              : count.value < least ? help_for_least(unit, units)
                                                    : "");
    }
    const std::string written = in_units(std::to_string(count.value), unit, units);
    if (!has_usual_exponent(digits)) {
      return reporter_.report(value,
                              std::string(key_.name()) + " '" + text + "' has an exponent that is not from 0 to " +
                                  std::to_string(largest_exponent),
                              "write " + written);
    }
    return with_value(value, written, Count{count.value, unit_of(unit)});
  }

 private:
  // `number` must be well formed.
  static bool has_usual_exponent(std::string_view number) {
    const std::size_t mark = number.find_first_of("eE");
    if (mark == std::string_view::npos) return true;
    number.remove_prefix(number[mark + 1] == '+' ? mark + 2 : mark + 1);
    int exponent = 0;
    const auto result = std::from_chars(number.data(), number.data() + number.size(), exponent);
    return result.ec == std::errc{} && !number.starts_with('-') && exponent <= largest_exponent;
  }

  // Of a duration that is too short.
  std::string help_for_least(std::string_view unit, const std::vector<std::string>& units) const {
    std::string least = "write at least " + in_units(key_.or_zero ? "0" : "1", unit, units);
    if (key_.fallback_text.empty()) return least;
    return least + "; without this key it is " + std::string(key_.fallback_text);
  }

  // "1 step", "12 steps". The units are listed in pairs of singular and plural.
  static std::string in_units(const std::string& count, std::string_view unit, const std::vector<std::string>& units) {
    const auto pair = (std::find(units.begin(), units.end(), unit) - units.begin()) / 2 * 2;
    return count + " " + units[static_cast<std::size_t>(pair + (count == "1" ? 0 : 1))];
  }

  // "12s", "30 minuts"; of time, where steps are counted.
  Node unknown_unit(const Node& value, const std::string& count, const std::string& unit) const {
    const std::vector<std::string> units = units_of(key_);
    if (const std::string whole = without_prefix(count, unit, units); !whole.empty()) return misspelt(value, whole);
    const std::optional<Hint> hint = hint_for("duration", unit);
    const std::string meant = hint ? std::string(hint->meant) : nearest(unit, units);
    if (is_one(meant, units)) return misspelt(value, in_units(count, meant, units));
    const std::string refused = std::string(key_.name()) + " takes " + takes(key_) + ", not " + describe(value);
    if (hint && !hint->is_supported()) return reporter_.report(value, refused, hint->help);
    const bool is_time = is_one(hint ? meant : unit, {"second", "seconds", "minute", "minutes", "hour", "hours"});
    return is_time ? reporter_.report(value, refused, "train.max_time limits the time of a run") : wrong(value);
  }

  // "10000 steps" of "10k steps" and of "10k"; empty if the unit begins with no such prefix.
  std::string without_prefix(const std::string& count, const std::string& unit,
                             const std::vector<std::string>& units) const {
    if (unit.empty() || std::string_view("kKM").find(unit.front()) == std::string_view::npos) return "";
    std::string rest = unit.substr(std::min(unit.find_first_not_of(' ', 1), unit.size()));
    if (rest.empty()) rest = key_.type == Takes<Amount>::type ? "examples" : key_.steps ? "steps" : "";
    const Number<double> number = parse_number(count);
    if (!is_one(rest, units) || !number.ok()) return "";
    const Number<std::int64_t> whole = parse_integer(exact(number.value * (unit.front() == 'M' ? 1e6 : 1e3)));
    return whole.ok() && whole.value > 0 ? in_units(std::to_string(whole.value), rest, units) : "";
  }

  Node wrong(const Node& value) const { return wrong_value(key_, value, reporter_); }
  Node misspelt(const Node& value, const std::string& near) const {
    return misspelt_value(key_, value, near, reporter_);
  }

  const Key& key_;
  const Reporter& reporter_;
};

Node check_count(const Key& key, const Node& value, const Reporter& reporter) {
  return CountCheck(key, reporter).check(value);
}

// The texts of whole numbers from 1 to 10^12 (largest_integer) that the checks of a config accept.
std::string count_pattern() {
  const auto repeated = [](const std::string& text, int least, int most) {
    return text + "{" + std::to_string(least) + "," + std::to_string(most) + "}";
  };
  std::string pattern = "(?:[1-9]" + repeated("[0-9]", 0, 11) + "|1000000000000)(?:\\.0*)?";
  for (int k = 0; k <= largest_exponent; ++k) {
    const std::string exponent = "[eE]\\+?0*" + std::to_string(k);
    const std::string fraction = "(?:\\." + repeated("[0-9]", 0, k) + "0*)?";
    if (k < largest_exponent) {
      pattern += "|[1-9]" + repeated("[0-9]", 0, 11 - k);
      pattern += fraction + exponent;
    }
    if (k > 0) pattern += "|0?\\.(?=0*[1-9])" + repeated("[0-9]", 1, k) + "0*" + exponent;
    pattern += "|1" + repeated("0", 12 - k, 12 - k) + "(?:\\.0*)?" + exponent;
  }
  return pattern;
}

// The texts of 0 that the checks of a config accept.
std::string zero_pattern() {
  return "(?:0(?:\\.0*)?|\\.0+)(?:[eE]\\+?0*(?:[0-9]|1[0-" + std::to_string(largest_exponent - 10) + "]))?";
}

// A count and its unit, which steps and examples need not have; and `never`.
std::string count_schema(const Key& key, Definitions& /*named*/) {
  std::vector<std::string> alternatives;
  if (key.steps) {
    alternatives.push_back(std::string(R"({"type": "integer", "minimum": )") + (key.or_zero ? "0" : "1") +
                           R"(, "maximum": 1000000000000})");
  }
  const std::string unit = "(?:" + join(units_of(key), "|") + ")" + (key.steps ? "?" : "");
  alternatives.push_back(
      R"({"type": "string", "pattern": )" +
      schema::string("^\\+?(?:" + (key.or_zero ? zero_pattern() + "|" : "") + count_pattern() + ") *" + unit + "$") +
      "}");
  if (key.type == Type::interval) alternatives.emplace_back(R"({"const": "never"})");
  if (!key.words.empty()) alternatives.push_back(schema::words(key.words));
  return schema::any_of(alternatives);
}

std::string duration_text(const Key& /*key*/) {
  return "a duration such as '100 steps', '2 epochs' or '50000 examples'";
}

std::string interval_text(const Key& key) {
  std::string words;
  for (const std::string& word : key.words) words += " or '" + word + "'";
  if (!key.steps) return "a duration such as '30 minutes' or '2 hours', or 'never'" + words;
  return std::string("an interval such as '100 steps'") + (key.time ? ", '1 epoch' or '10 minutes'" : " or '1 epoch'") +
         ", or 'never'";
}

std::string amount_text(const Key& /*key*/) { return "a count such as '1 batch' or '1000 examples'"; }

std::string durations_text(const Key& /*key*/) { return "a list of durations such as '100 steps' or '2 epochs'"; }

std::string durations_schema(const Key& key, Definitions& named) {
  return schema::list_of(count_schema(key, named), 0);
}

Node check_durations(const Key& key, const Node& value, const Reporter& reporter) {
  return check_list(key, value, 0, reporter, [&](const Node& item) { return check_count(key, item, reporter); });
}

std::string scales_text(const Key& key) { return "a list of pairs of a duration and a number" + range_of(key, false); }

std::string scales_schema(const Key& key, Definitions& named) {
  return schema::list_of(schema::pair_of(count_schema(key, named), schema::number(key)), 0);
}

Node check_scales(const Key& key, const Node& value, const Reporter& reporter) {
  return check_list(key, value, 0, reporter, [&](const Node& pair) {
    if (!pair.is(Kind::sequence) || pair.items.size() != 2) return wrong_value(key, pair, reporter);
    Node result = empty_at(pair, Kind::sequence);
    result.items = {pair.items[0].valid() ? check_count(key, pair.items[0], reporter) : pair.items[0],
                    pair.items[1].valid() ? check_number(key, pair.items[1], reporter) : pair.items[1]};
    if (!result.items[0].valid() || !result.items[1].valid()) result.kind = Kind::invalid;
    return result;
  });
}

}  // namespace

constinit const Type Type::duration{duration_text, count_schema, check_count};
constinit const Type Type::interval{interval_text, count_schema, check_count};
constinit const Type Takes<Amount>::type{amount_text, count_schema, check_count};
constinit const Type Takes<std::vector<Duration>>::type{durations_text, durations_schema, check_durations};
constinit const Type Type::scales{scales_text, scales_schema, check_scales};

std::vector<std::string> units_of(const Key& key) {
  if (key.type == Takes<Amount>::type) return {"batch", "batches", "example", "examples"};
  std::vector<std::string> units;
  if (key.steps) units = {"step", "steps", "epoch", "epochs", "example", "examples"};
  if (key.time) units.insert(units.end(), {"second", "seconds", "minute", "minutes", "hour", "hours"});
  return units;
}

std::string bare_number_text(const Key& key) {
  const TypeOf type = key.type;
  if (type == Takes<Amount>::type) return "a bare number counts examples; '2 batches' counts batches";
  const bool is_duration = type == Type::duration || type == Type::interval || type == Type::scales ||
                           type == Takes<std::vector<Duration>>::type;
  return is_duration && key.steps ? "a bare number counts steps; '10 epochs' counts epochs" : "";
}

void Takes<Duration>::store(const Node& value, Duration& out) {
  const Count& count = parsed_as<Count>(value);
  out = {count.count, count.unit.value_or(Unit::steps), place_of(value)};
}

void Takes<Timeout>::store(const Node& value, Timeout& out) {
  out.automatic = value.text == "auto";
  if (!out.automatic) Takes<Interval>::store(value, out.after);
}

void Takes<Interval>::store(const Node& value, Interval& out) {
  out.reset();
  if (value.text != "never") Takes<Duration>::store(value, out.emplace());
}

void Takes<Amount>::store(const Node& value, Amount& out) {
  const Count& count = parsed_as<Count>(value);
  out = {count.count, !count.unit, place_of(value)};
}

void Takes<std::vector<Duration>>::store(const Node& value, std::vector<Duration>& out) {
  store_items<Takes<Duration>>(value, out);
}

void Takes<std::vector<declare::Scale>>::store(const Node& value, std::vector<declare::Scale>& out) {
  out.clear();
  for (const Node& pair : value.items) {
    declare::Scale& scale = out.emplace_back();
    Takes<Duration>::store(pair.items[0], scale.boundary);
    Takes<double>::store(pair.items[1], scale.scale);
  }
}

Node steps_at(const Node& where, std::int64_t steps) {
  const Node node = scalar_at(where, std::to_string(steps) + (steps == 1 ? " step" : " steps"));
  return with_value(node, node.text, Count{steps, Unit::steps});
}

}  // namespace pmaptrain::spec
