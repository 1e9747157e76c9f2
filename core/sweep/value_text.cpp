#include "core/sweep/value_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <utility>

#include "core/base/json.h"
#include "core/base/short_keys.h"
#include "core/base/text.h"
#include "core/base/utf8.h"

namespace pmaptrain::sweep {
namespace {

using report::Json;

// A text with some digits of it, if it is a number.
std::string with_digits(const std::string& text, int digits) {
  if (digits == all_digits) return printable(text);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = text.find_first_not_of("-0123456789") == std::string::npos;
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number && !whole ? fmt::format("{:.{}g}", number, digits) : printable(text);
}

// A key with its value, in brackets if that has several keys; the key alone where its value is empty, as that of a
// choice without options.
std::string named_text(const std::string& name, const Json& value, int digits) {
  std::string text = value_text(value, digits);
  if (value.is_object() && value.size() > 1) text = "(" + text + ")";
  return text.empty() ? printable(name) : printable(name) + " " + text;
}

bool is_number(std::string_view segment) { return segment.find_first_not_of("0123456789") == std::string_view::npos; }

// Whether two keys may name the same thing. Where their segments differ, one has an index and the other a name.
bool may_be_one(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    const std::string_view x = a.substr(0, a.find('.')), y = b.substr(0, b.find('.'));
    if (x != y && is_number(x) == is_number(y)) return false;
    a.remove_prefix(std::min(a.size(), x.size() + 1));
    b.remove_prefix(std::min(b.size(), y.size() + 1));
  }
  return a.empty() && b.empty();
}

// The value that a choice gives a key, or what another choice writes otherwise; null where it has neither. No choice
// has both spellings: a key of a trial is set once.
const Json* value_at(const Json& choice, const std::string& key) {
  if (const auto found = choice.find(key); found != choice.end()) return &*found;
  for (auto at = choice.begin(); at != choice.end(); ++at) {
    if (may_be_one(at.key(), key)) return &*at;
  }
  return nullptr;
}

}  // namespace

std::string value_text(const Json& value, int digits) {
  std::vector<std::string> parts;
  if (value.is_object()) {
    for (const auto& [key, of_key] : value.items()) parts.push_back(named_text(key, of_key, digits));
    return join(parts, ", ");
  }
  if (value.is_array()) {
    for (const Json& item : value) parts.push_back(value_text(item, digits));
    return "[" + join(parts, ", ") + "]";
  }
  if (value.is_null()) return "";
  return with_digits(value.is_string() ? value.get<std::string>() : json_text(value), digits);
}

std::map<std::string, std::string> coupled_texts(const std::set<std::string>& values, int digits) {
  std::vector<Json> choices;
  std::vector<std::string> keys;
  for (const std::string& value : values) {
    Json& choice = choices.emplace_back(value.starts_with('{') ? try_parse_json(value) : Json());
    if (!choice.is_object()) choice = Json::object();
    for (const auto& entry : choice.items()) {
      if (std::find(keys.begin(), keys.end(), entry.key()) == keys.end()) keys.push_back(entry.key());
    }
  }
  // Keys that end alike, as those of several layers, have one name where each choice gives all of them one value.
  const std::vector<std::string> names = short_keys(keys);
  std::map<std::string, std::string> name_of;
  std::map<std::string, std::vector<std::string>> by_ending;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    name_of[keys[i]] = names[i];
    by_ending[short_keys({keys[i]}).front()].push_back(keys[i]);
  }
  std::set<std::string> different;
  for (const auto& [ending, of_ending] : by_ending) {
    const bool are_alike = std::all_of(choices.begin(), choices.end(), [&, alike = of_ending](const Json& choice) {
      std::set<std::string> found;
      for (const std::string& key : alike) {
        const Json* const value = value_at(choice, key);
        found.insert(value != nullptr ? json_text(*value) : "");
      }
      return found.size() == 1;
    });
    for (const std::string& key : of_ending) {
      if (are_alike) name_of[key] = ending;
      different.insert(name_of[key]);
    }
  }
  std::map<std::string, std::string> texts;
  auto value = values.begin();
  for (const Json& choice : choices) {
    std::vector<std::string> named;
    for (const auto& [key, of_key] : choice.items()) {
      // A value that is a choice itself says nothing without its key.
      const bool has_name = different.size() > 1 || of_key.is_object() || of_key.is_null();
      std::string text = has_name ? named_text(name_of[key], of_key, digits) : value_text(of_key, digits);
      if (std::find(named.begin(), named.end(), text) == named.end()) named.push_back(std::move(text));
    }
    std::string text = join(named, ", ");
    if (named.empty()) {
      const Json list = value->starts_with('[') ? try_parse_json(*value) : Json();
      text = list.is_array() ? value_text(list, digits) : with_digits(*value, digits);
    }
    texts.emplace(*value++, std::move(text));
  }
  return texts;
}

std::vector<std::string> parameter_values(const std::string& parameters, const std::vector<std::string>& names,
                                          int digits) {
  const Json document = try_parse_json(parameters);
  std::vector<std::string> values;
  for (const std::string& name : names) {
    const bool has = document.is_object() && document.contains(name);
    if (!has) {
      values.emplace_back();
      continue;
    }
    const Json& of_name = document[name];
    const std::string value = of_name.is_string() ? of_name.get<std::string>() : json_text(of_name);
    values.push_back(coupled_texts({value}, digits).at(value));
  }
  return values;
}

std::string parameters_text(const std::string& parameters) {
  const Json document = try_parse_json(parameters);
  std::vector<std::string> names, parts;
  if (document.is_object()) {
    for (const auto& entry : document.items()) names.push_back(entry.key());
  }
  const std::vector<std::string> values = parameter_values(parameters, names);
  for (std::size_t i = 0; i < names.size(); ++i) parts.push_back(printable(names[i]) + "=" + values[i]);
  return join(parts, ", ");
}

}  // namespace pmaptrain::sweep
