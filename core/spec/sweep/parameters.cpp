#include "core/spec/sweep/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "core/base/text.h"
#include "core/spec/keys.h"
#include "core/spec/print.h"
#include "core/spec/sweep/joint_choice.h"
#include "core/spec/types/number.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

// In the order of Space.
constexpr std::array<std::string_view, 6> spaces = {"choice", "range", "int", "log_int", "uniform", "log_uniform"};

std::vector<std::string> names_of_spaces() { return {spaces.begin(), spaces.end()}; }

// The value as all spellings of it have it: numbers and booleans by what they mean, keys in order.
Node canonical(Node value) {
  if (value.is(Kind::scalar) && !value.quoted) {
    if (const auto truth = parse_boolean(value.text)) {
      value.text = *truth ? "true" : "false";
    } else if (const auto whole = parse_integer(value.text); whole.ok()) {
      value.text = std::to_string(whole.value);
    } else if (const auto number = parse_number(value.text); number.ok()) {
      value.text = exact(number.value);
    }
  }
  for (Node& item : value.items) item = canonical(std::move(item));
  if (!value.is(Kind::map)) return value;
  std::map<std::string, Node> sorted;
  for (std::size_t i = 0; i < value.keys.size(); ++i) sorted.emplace(value.keys[i].text, value.items[i]);
  Node result = empty_at(value, Kind::map);
  for (auto& [key, item] : sorted) result.add(scalar_at(value, key), std::move(item));
  return result;
}

class ParameterReader {
 public:
  explicit ParameterReader(const Reporter& reporter) : reporter_(reporter) {}

  std::optional<ReadParameter> read(const Node& key, const Node& value) const {
    const bool one = value.is(Kind::map) && value.keys.size() == 1;
    const std::string space = one ? value.keys.front().text : "";
    const auto at = std::find(spaces.begin(), spaces.end(), space);
    if (!one || at == spaces.end()) {
      const std::string near = one ? nearest(space, names_of_spaces()) : "";
      reporter_.report(one             ? value.keys.front()
                       : value.valid() ? value
                                       : key,
                       one ? fmt::format("'{}' is no kind of values", space)
                           : fmt::format("'{}' takes one kind of values, not {}", key.text, describe(value)),
                       !near.empty()              ? fmt::format("did you mean '{}'?", near)
                       : value.is(Kind::sequence) ? fmt::format("{}: {{choice: {}}}", key.text, print_value(value))
                                                  : fmt::format("one of {}; for example {}: {{choice: [1, 2]}}",
                                                                join(names_of_spaces(), ", "), key.text));
      return std::nullopt;
    }
    const Node& given = value.items.front();
    ReadParameter found;
    SweepParameter& parameter = found.parameter;
    parameter.name = key.text;
    parameter.space = static_cast<Space>(at - spaces.begin());
    std::vector<Node>& values = found.values;
    const bool read = parameter.space == Space::choice  ? read_choice(key, given, values, found.free)
                      : parameter.space == Space::range ? read_range(key, given, values)
                                                        : read_bounds(key, given, parameter, values);
    if (!read) return std::nullopt;
    if (parameter.space == Space::choice || parameter.space == Space::range) {
      for (const Node& item : values) parameter.values.push_back(print_value(item));
    }
    return found;
  }

 private:
  bool read_choice(const Node& key, const Node& given, std::vector<Node>& values, bool& free) const {
    if (!given.is(Kind::sequence) || given.items.empty()) {
      reporter_.report(given,
                       fmt::format("choice takes a list of values, not {}",
                                   given.is(Kind::sequence) ? "an empty one" : describe(given)),
                       fmt::format("{}: {{choice: [1, 2]}}", key.text));
      return false;
    }
    std::map<std::string, std::string> seen;
    for (const Node& item : given.items) {
      const std::string text = print_value(item);
      const auto [first, is_new] = seen.emplace(print_value(canonical(item)), text);
      if (is_new) continue;
      reporter_.report(item,
                       first->second == text ? fmt::format("{} is twice in this choice", text)
                                             : fmt::format("{} and {} are one value", first->second, text),
                       "remove one");
      return false;
    }
    const bool is_key = key.text.find('.') != std::string::npos || child(root_key(), key.text) != nullptr;
    const bool maps = std::all_of(given.items.begin(), given.items.end(),
                                  [](const Node& item) { return item.is(Kind::map) && !item.keys.empty(); });
    if (!is_key && !maps) {
      std::vector<std::string> names;
      for (const Key* one : children(root_key())) names.emplace_back(one->name());
      const std::string joint = joint_choice(key.text, given.items);
      const std::string near = nearest(key.text, names);
      reporter_.report(key, fmt::format("'{}' is no key of a config", key.text),
                       !joint.empty() ? "a name of your own takes a choice between maps of keys: " + joint
                       : near.empty() ? "a name of your own takes a choice between maps of keys: size: {choice: "
                                        "[{data.batch_size: 64, optimizer.learning_rate: 0.1}]}"
                                      : fmt::format("did you mean '{}'?", near));
      return false;
    }
    free = !is_key;
    values = given.items;
    return true;
  }

  std::optional<double> number(const Node& node) const {
    Key key;
    key.path = "a bound";
    key.type = Type::number;
    key.low = -unbounded;
    key.high = unbounded;
    const Node checked = Type::number.check(key, node, reporter_);
    if (!checked.valid()) return std::nullopt;
    return parsed_as<double>(checked);
  }

  bool read_range(const Node& key, const Node& given, std::vector<Node>& values) const {
    if (!given.is(Kind::sequence) || given.items.size() != 3) {
      reporter_.report(given, "range takes [start, stop, step]; stop is included",
                       fmt::format("{}: {{range: [0.1, 0.5, 0.1]}}", key.text));
      return false;
    }
    std::array<double, 3> numbers{};
    bool whole = true;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::optional<double> one = number(given.items[i]);
      if (!one) return false;
      numbers.at(i) = *one;
      whole = whole && parse_integer(given.items[i].text).ok();
    }
    const auto [start, stop, step] = numbers;
    if (!(step > 0) || stop < start) {
      reporter_.report(given, "this range is empty: the step is more than 0, and stop at least start",
                       "[start, stop, step]");
      return false;
    }
    const double count = std::floor((stop - start) / step + 1e-6) + 1;
    if (count > static_cast<double>(most_trials)) {
      reporter_.report(given, fmt::format("this range has {:.0f} values", count), "a larger step");
      return false;
    }
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
      const double value = start + static_cast<double>(i) * step;
      // Twelve digits, so that 0.1 + 2 * 0.1 is 0.3.
      values.push_back(
          scalar_at(given, whole ? fmt::format("{:.0f}", value) : exact(std::stod(fmt::format("{:.12g}", value)))));
    }
    return true;
  }

  bool read_bounds(const Node& key, const Node& given, SweepParameter& parameter, std::vector<Node>& values) const {
    const bool whole = parameter.space == Space::integer || parameter.space == Space::log_integer;
    const bool log = parameter.space == Space::log_uniform || parameter.space == Space::log_integer;
    if (!given.is(Kind::sequence) || given.items.size() != 2) {
      reporter_.report(
          given, "this takes [low, high]",
          fmt::format("{}: {{{}: [{}]}}", key.text, to_string(parameter.space), whole ? "1, 8" : "0.001, 0.1"));
      return false;
    }
    for (std::size_t i = 0; i < 2; ++i) {
      const std::optional<double> one = number(given.items[i]);
      if (!one) return false;
      if (whole && !parse_integer(given.items[i].text).ok()) {
        reporter_.report(given.items[i], fmt::format("{} takes integers", to_string(parameter.space)), "");
        return false;
      }
      constexpr double exact_integers = 9007199254740992;  // beyond it numbers of 64 bits leave some out
      if (whole && std::abs(*one) > exact_integers) {
        reporter_.report(given.items[i], "an integer of a sweep is at most 2^53", "a choice takes larger ones");
        return false;
      }
      (i == 0 ? parameter.low : parameter.high) = *one;
    }
    if (!(parameter.low < parameter.high)) {
      reporter_.report(given, "low is to be less than high",
                       parameter.low > parameter.high
                           ? fmt::format("swap the two: [{}, {}]", given.items[1].text, given.items[0].text)
                           : fmt::format("one value alone goes below 'set': {}: {}", key.text, given.items[0].text));
      return false;
    }
    if (log && !(parameter.low > 0)) {
      reporter_.report(given.items[0], fmt::format("{} takes bounds of more than 0", to_string(parameter.space)),
                       whole ? "int takes 0 too" : "uniform takes 0 too");
      return false;
    }
    values.push_back(given);
    return true;
  }

  const Reporter& reporter_;
};

}  // namespace

std::optional<ReadParameter> read_parameter(const Node& key, const Node& value, const Reporter& reporter) {
  return ParameterReader(reporter).read(key, value);
}

std::string to_string(Space space) { return std::string(spaces.at(static_cast<std::size_t>(space))); }

}  // namespace pmaptrain::spec
