#include "core/spec/types/leaf.h"

#include <algorithm>
#include <cstdint>

#include "core/base/text.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

std::string plain(double value) {
  if (value >= 1e15 || value <= -1e15) return exact(value);
  const auto whole = static_cast<std::int64_t>(value);
  return static_cast<double>(whole) < value || static_cast<double>(whole) > value ? exact(value) : with_commas(whole);
}

bool number_like(std::string_view text) { return parse_number(text).ok() || parse_integer(text).ok(); }

// "momentum takes a number from 0 to 1, not 'x'"
std::string refused(const Key& key, const Node& value) {
  return std::string(key.name()) + " takes " + takes(key) + ", not " + describe(value);
}

}  // namespace

bool has_word(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string example_of(const Key& key) {
  return key.example.empty() ? std::string{}
                             : "for example " + std::string(key.example.substr(0, key.example.find('\n')));
}

std::string range_of(const Key& key, bool whole) {
  const bool low = key.low > -unbounded;
  const bool high = key.high < (whole ? largest_integer : unbounded);
  if (low && high && !key.open_low && !key.open_high) return " from " + plain(key.low) + " to " + plain(key.high);
  std::string text;
  if (low) text += (key.open_low ? " greater than " : " of at least ") + plain(key.low);
  if (low && high) text += " and";
  if (high) text += (key.open_high ? " less than " : " of at most ") + plain(key.high);
  return text;
}

Node wrong_value(const Key& key, const Node& value, const Reporter& reporter) {
  std::string help = example_of(key);
  if (value.is(Kind::scalar) && value.quoted && number_like(value.text)) {
    help = "quoted values are text: remove the quotes, " + value.text;
  }
  return reporter.report(value, refused(key, value), help);
}

Node misspelt_value(const Key& key, const Node& value, const std::string& near, const Reporter& reporter) {
  return reporter.report(value, refused(key, value), "did you mean '" + near + "'?");
}

Node empty_value(const Key& key, const Node& value, const Reporter& reporter) {
  return reporter.report(value, std::string(key.name()) + " is empty", example_of(key));
}

Node with_text(const Node& value, std::string text) {
  Node result = value;
  result.text = std::move(text);
  return result;
}

std::string list_of(const Key& key, const std::string& item) {
  if (key.length == 0) return "a list of " + item + "s";
  std::string count = std::to_string(key.length);
  if (key.least_length > 0) {
    count = std::to_string(key.least_length) + (key.least_length + 1 == key.length ? " or " : " to ") + count;
  }
  return "a list of " + count + " " + item + (key.length == 1 ? "" : "s");
}

Node check_list(const Key& key, const Node& value, const Reporter& reporter, const CheckItem& each) {
  const std::size_t items = value.items.size();
  const bool fits = key.least_length > 0 && items >= key.least_length && items <= key.length;
  return check_list(key, value, fits ? 0 : key.length, reporter, each);
}

Node check_list(const Key& key, const Node& value, std::size_t length, const Reporter& reporter,
                const CheckItem& each) {
  if (!value.is(Kind::sequence)) return wrong_value(key, value, reporter);
  if (length != 0 && value.items.size() != length) {
    const bool follows = !key.as_long_as.empty() && key.least_length == 0;
    return reporter.report(
        value,
        std::string(key.name()) + " takes " + takes(key) + ", not a list of " + std::to_string(value.items.size()),
        follows ? "as many as " + std::string(key.as_long_as) + " has" : example_of(key));
  }
  Node result = empty_at(value, Kind::sequence);
  for (const Node& item : value.items) {
    result.items.push_back(item.valid() ? each(item) : item);
    if (!result.items.back().valid()) result.kind = Kind::invalid;
  }
  return result;
}

Node check_list_or_one(const Key& key, const Node& value, const Reporter& reporter, const CheckItem& each) {
  if (!value.is(Kind::scalar)) return check_list(key, value, 0, reporter, each);
  Node result = empty_at(value, Kind::sequence);
  result.items.push_back(each(value));
  if (!result.items.back().valid()) result.kind = Kind::invalid;
  return result;
}

}  // namespace pmaptrain::spec
