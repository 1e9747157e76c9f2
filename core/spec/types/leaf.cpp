// Checks one value of one key: type, range and canonical form.
#include "core/spec/types/leaf.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "core/base/hints.h"
#include "core/base/text.h"
#include "core/spec/keys/check.h"
#include "core/spec/types/takes.h"
#include "core/spec/yaml/report.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

std::string name_of(const Key& key) { return std::string(key.name()); }

bool has_word(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string example_of(const Key& key) {
  return key.example.empty() ? std::string{}
                             : "for example " + std::string(key.example.substr(0, key.example.find('\n')));
}

bool number_like(std::string_view text) { return parse_number(text).ok() || parse_integer(text).ok(); }

}  // namespace

Node wrong_value(const Key& key, const Node& value, const Reporter& reporter) {
  std::string help = example_of(key);
  if (value.is(Kind::scalar) && value.quoted && number_like(value.text)) {
    help = "quoted values are text: remove the quotes, " + value.text;
  }
  return reporter.report(value, name_of(key) + " takes " + takes(key) + ", not " + describe(value), help);
}

Node misspelt_value(const Key& key, const Node& value, const std::string& near, const Reporter& reporter) {
  return reporter.report(value, name_of(key) + " takes " + takes(key) + ", not " + describe(value),
                         "did you mean '" + near + "'?");
}

Node empty_value(const Key& key, const Node& value, const Reporter& reporter) {
  return reporter.report(value, name_of(key) + " is empty", example_of(key));
}

namespace {

class Leaf {
 public:
  Leaf(const Key& key, const Reporter& reporter) : key_(key), reporter_(reporter) {}

  Node wrong(const Node& value) const { return wrong_value(key_, value, reporter_); }
  Node misspelt(const Node& value, const std::string& near) const {
    return misspelt_value(key_, value, near, reporter_);
  }

  // Reports a scalar that is not a valid number.
  Node bad_number(const Node& value, NumberError error) const {
    const std::string& text = value.text;
    switch (error) {
      case NumberError::octal: {
        const std::size_t start = text.find_first_of("123456789");
        const bool leading_zero = text.find_first_not_of("+-0123456789.eE") == std::string::npos;
        return reporter_.report(
            value, name_of(key_) + " " + text + ": octal, hexadecimal and binary numbers are not supported",
            leading_zero && start != std::string::npos ? "if a decimal number is meant, write " + text.substr(start)
                                                       : "write it as a decimal number");
      }
      case NumberError::underscore: {
        std::string clean = text;
        std::erase(clean, '_');
        return reporter_.report(value, name_of(key_) + " " + text + ": underscores in numbers are not supported",
                                "write " + clean);
      }
      case NumberError::not_finite:
        return reporter_.report(value, name_of(key_) + " " + text + ": NaN and infinity are not allowed",
                                "it takes " + takes(key_));
      case NumberError::underflow:
        return reporter_.report(value, name_of(key_) + " " + text + " underflows to 0 in float32",
                                "the smallest float32 is about 1.5e-45; write 0.0 for zero");
      case NumberError::overflow:
        return reporter_.report(value, name_of(key_) + " " + text + " is too large",
                                "the largest float32 is about 3.4e38");
      default: break;
    }
    return wrong(value);
  }

  Node integer(const Node& value) const {
    if (value.is(Kind::scalar) && has_word(key_.words, value.text)) return value;
    if (!value.is(Kind::scalar) || value.quoted) return wrong(value);
    const auto number = parse_integer(value.text);
    const bool beyond = number.error == NumberError::overflow;
    if (!number.ok() && !beyond) {
      if (number.error == NumberError::not_a_number && !key_.words.empty()) {
        const std::string near = nearest(value.text, key_.words);
        if (!near.empty()) return misspelt(value, near);
      }
      return bad_number(value, number.error);
    }
    const auto wide = static_cast<double>(number.value);
    if (beyond ? value.text.starts_with('-') : wide < key_.low) return wrong(value);
    if (beyond || wide > key_.high) {
      if (key_.high < largest_integer) return wrong(value);
      return reporter_.report(value, name_of(key_) + " " + value.text + " is too large",
                              "the largest is " + with_commas(static_cast<std::int64_t>(key_.high)));
    }
    return with_text(value, std::to_string(number.value));
  }

  Node seed(const Node& value) const {
    if (!value.is(Kind::scalar) || value.quoted) return wrong(value);
    const auto number = parse_seed(value.text);
    if (number.error == NumberError::overflow) return wrong(value);
    if (!number.ok()) return bad_number(value, number.error);
    return with_text(value, std::to_string(number.value));
  }

  Node number(const Node& value) const {
    if (!value.is(Kind::scalar) || value.quoted) return wrong(value);
    const auto parsed = parse_number(value.text);
    if (!parsed.ok()) return bad_number(value, parsed.error);
    const double x = parsed.value;
    if (x < key_.low || x > key_.high || (key_.open_low && !(x > key_.low)) || (key_.open_high && !(x < key_.high))) {
      return wrong(value);
    }
    return with_text(value, exact(x));
  }

  // A value that is no alternative of a choice that may also be a number.
  Node number_or_choice(const Node& value) const {
    if (value.is(Kind::scalar) && parse_number(value.text).error != NumberError::not_a_number) {
      Key number = key_;
      number.type = Type::number;
      return Leaf(number, reporter_).number(value);
    }
    std::vector<std::string> names;
    for (const Key* other : alternatives(key_)) names.emplace_back(other->name());
    const std::string near = value.is(Kind::scalar) ? nearest(value.text, names) : std::string{};
    return near.empty() ? wrong(value) : misspelt(value, near);
  }

  Node boolean(const Node& value) const {
    if (!value.is(Kind::scalar) || value.quoted) return wrong(value);
    const auto parsed = parse_boolean(value.text);
    if (parsed) return with_text(value, *parsed ? "true" : "false");
    std::string word = value.text;
    std::transform(word.begin(), word.end(), word.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    std::string help;
    if (word == "yes" || word == "on" || word == "y" || word == "1") help = "write true";
    if (word == "no" || word == "off" || word == "n" || word == "0") help = "write false";
    return reporter_.report(value, name_of(key_) + " takes true or false, not " + describe(value), help);
  }

  Node word(const Node& value) const {
    if (!value.is(Kind::scalar)) return wrong(value);
    if (has_word(key_.words, value.text)) return value;
    std::string near = nearest(value.text, key_.words);
    if (const std::optional<Hint> hint = hint_for(key_.name(), value.text);
        hint && !same_letters(value.text, key_.words)) {
      if (!hint->is_supported()) {
        return reporter_.report(value, name_of(key_) + " " + value.text + " is not supported", hint->help);
      }
      near = hint->meant;
    }
    return near.empty() ? wrong(value) : misspelt(value, near);
  }

  // One word, or one for each of some names.
  Node words(const Node& value) const {
    if (!value.is(Kind::map) || value.keys.empty()) return word(value);
    Key item = key_;
    item.type = Type::word;
    item.words = key_.item_words;
    Node result = empty_at(value, Kind::map);
    for (std::size_t i = 0; i < value.keys.size(); ++i) {
      Node checked = value.items[i].valid() ? Leaf(item, reporter_).word(value.items[i]) : value.items[i];
      if (!checked.valid()) result.kind = Kind::invalid;
      result.add(value.keys[i], std::move(checked));
    }
    return result;
  }

  Node text(const Node& value) const {
    if (!value.is(Kind::scalar) || value.text.empty()) return wrong(value);
    Node result = value;
    result.quoted = true;
    return result;
  }

  Node run_name(const Node& value) const {
    if (!value.is(Kind::scalar)) return wrong(value);
    const std::string& name = value.text;
    const bool bad = name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
                     name.starts_with("-") || name.size() > 200;
    if (bad) {
      return reporter_.report(value, "name '" + name + "' is not a valid run name",
                              "a name contains no '/', does not begin with '-' and has at most 200 bytes; --run-dir "
                              "sets the path of the run folder");
    }
    if (has_invisible(name) || name.front() == ' ' || name.back() == ' ') {
      return reporter_.report(value, "name '" + name + "' contains invisible characters",
                              "remove control characters, bidirectional marks, and leading or trailing spaces");
    }
    return text(value);
  }

  Node layer_name(const Node& value) const {
    if (!value.is(Kind::scalar)) return wrong(value);
    if (is_identifier(value.text)) return value;
    if (value.text.find('.') != std::string::npos) {
      return reporter_.report(value, "the layer name '" + value.text + "' contains a dot",
                              "dots separate the parts of parameter names such as head.kernel");
    }
    return wrong(value);
  }

  // Paths in a file are relative to its folder, paths in an option to the current directory.
  Node path(const Node& value) const {
    if (!value.is(Kind::scalar) || value.text.empty()) return wrong(value);
    std::filesystem::path path(value.text);
    if (path.is_relative()) {
      const std::string base = value.source ? value.source->directory : std::string{};
      path = std::filesystem::absolute(base.empty() ? path : std::filesystem::path(base) / path);
    }
    Node result = with_text(value, path.lexically_normal().string());
    result.quoted = true;
    return result;
  }

  Node list(const Node& value, std::size_t length, const std::function<Node(const Node&)>& each) const {
    if (!value.is(Kind::sequence) || (length != 0 && value.items.size() != length)) {
      if (value.is(Kind::sequence)) {
        return reporter_.report(
            value, name_of(key_) + " takes " + takes(key_) + ", not a list of " + std::to_string(value.items.size()),
            example_of(key_));
      }
      return wrong(value);
    }
    Node result = empty_at(value, Kind::sequence);
    for (const Node& item : value.items) {
      result.items.push_back(item.valid() ? each(item) : item);
      if (!result.items.back().valid()) result.kind = Kind::invalid;
    }
    return result;
  }

  Node numbers(const Node& value) const {
    if (value.is(Kind::scalar) && has_word(key_.words, value.text)) return value;
    if (value.is(Kind::scalar)) {
      Node result = empty_at(value, Kind::sequence);
      result.items.push_back(number(value));
      if (!result.items.back().valid()) result.kind = Kind::invalid;
      return result;
    }
    Node result = list(value, 0, [&](const Node& item) { return number(item); });
    if (result.is(Kind::sequence) && result.items.empty()) return wrong_empty(value);
    return result;
  }

  Node range(const Node& value) const {
    Node result = list(value, 2, [&](const Node& item) { return number(item); });
    if (!result.is(Kind::sequence)) return result;
    const std::string &least = value.items[0].text, &greatest = value.items[1].text;
    if (parse_number(least).value <= parse_number(greatest).value) return result;
    return reporter_.report(value,
                            name_of(key_) + " begins with its least number, but " + least + " is more than " + greatest,
                            "write [" + greatest + ", " + least + "]");
  }

  Node spread(const Node& value) const {
    if (!value.is(Kind::scalar)) return range(value);
    const Number<double> parsed = parse_number(value.text);
    if (!parsed.ok() || value.quoted || parsed.value >= 0) return number(value);
    if (-parsed.value > key_.high) return wrong(value);
    return reporter_.report(value, name_of(key_) + " takes " + takes(key_) + ", not " + describe(value),
                            "one number is a distance to both sides: write " + value.text.substr(1));
  }

  // A list of texts; one text is a list of one.
  Node texts(const Node& value) const {
    Node result = list_or_one(value, [&](const Node& item) { return text(item); });
    const bool empty = result.is(Kind::sequence) && result.items.empty();
    return empty && key_.need == Need::required ? wrong_empty(value) : result;
  }

  Node files(const Node& value) const {
    Node result = list_or_one(value, [&](const Node& item) { return path(item); });
    return result.is(Kind::sequence) && result.items.empty() ? wrong_empty(value) : result;
  }

  Node durations(const Node& value) const {
    return list(value, 0, [&](const Node& item) { return check_duration(key_, item, reporter_); });
  }

  Node scales(const Node& value) const {
    return list(value, 0, [&](const Node& pair) {
      if (!pair.is(Kind::sequence) || pair.items.size() != 2) return wrong(pair);
      Node result = empty_at(pair, Kind::sequence);
      result.items = {pair.items[0].valid() ? check_duration(key_, pair.items[0], reporter_) : pair.items[0],
                      pair.items[1].valid() ? number(pair.items[1]) : pair.items[1]};
      if (!result.items[0].valid() || !result.items[1].valid()) result.kind = Kind::invalid;
      return result;
    });
  }

  Node matrix(const Node& value) const {
    Node result = list(value, 0, [&](const Node& item) { return item.is(Kind::map) ? wrong(item) : numbers(item); });
    if (!result.is(Kind::sequence)) return result;
    if (result.items.empty()) return wrong_empty(value);
    const std::size_t columns = result.items.front().items.size();
    for (const Node& row : result.items) {
      if (row.items.size() == columns) continue;
      return reporter_.report(row,
                              name_of(key_) + ": this example has " + std::to_string(row.items.size()) +
                                  " numbers, the first has " + std::to_string(columns),
                              "all examples need the same number of values");
    }
    return result;
  }

  Node padding(const Node& value) const {
    if (value.is(Kind::scalar)) {
      if (value.text == "SAME" || value.text == "VALID") return value;
      if (value.text == "same" || value.text == "valid")
        return misspelt(value, value.text == "same" ? "SAME" : "VALID");
      return wrong(value);
    }
    return list(value, 2,
                [&](const Node& pair) { return list(pair, 2, [&](const Node& amount) { return integer(amount); }); });
  }

  Node axis_names(const Node& value) const {
    return list(value, 0, [&](const Node& item) { return item.is(Kind::scalar) ? item : wrong(item); });
  }

  Node split(const Node& value) const {
    if (value.is(Kind::scalar)) return path(value);
    return list(value, 2, [&](const Node& item) { return text(item); });
  }

  Node tensors(const Node& value) const {
    if (value.is(Kind::map)) {
      Node result = empty_at(value, Kind::map);
      for (std::size_t i = 0; i < value.keys.size(); ++i) {
        Node item = value.items[i];
        if (item.is(Kind::blank)) {
          item = reporter_.report(value.keys[i], "'" + value.keys[i].text + "' has no value",
                                  "write its numbers, such as [0.0, 1.0]");
        } else {
          item = tensors(item);
        }
        if (!item.valid()) result.kind = Kind::invalid;
        result.add(value.keys[i], std::move(item));
      }
      return result;
    }
    return tensor(value);
  }

 private:
  static Node with_text(const Node& value, std::string text) {
    Node result = value;
    result.text = std::move(text);
    return result;
  }

  Node list_or_one(const Node& value, const std::function<Node(const Node&)>& each) const {
    if (!value.is(Kind::scalar)) return list(value, 0, each);
    Node result = empty_at(value, Kind::sequence);
    result.items.push_back(each(value));
    if (!result.items.back().valid()) result.kind = Kind::invalid;
    return result;
  }

  Node wrong_empty(const Node& value) const { return empty_value(key_, value, reporter_); }

  Node tensor(const Node& value) const {
    if (value.is(Kind::scalar)) return number(value);
    if (!value.is(Kind::sequence)) return wrong(value);
    if (value.items.empty()) {
      return reporter_.report(value, "this tensor is empty", "write at least one");
    }
    Node result = empty_at(value, Kind::sequence);
    for (const Node& item : value.items) {
      result.items.push_back(item.valid() ? tensor(item) : item);
      if (!result.items.back().valid()) result.kind = Kind::invalid;
    }
    if (!result.valid()) return result;
    for (const Node& item : result.items) {
      if (shape(item) == shape(result.items.front())) continue;
      return reporter_.report(item, "the shape of this row differs from that of the first row",
                              "all lists of the same nesting level must have the same length");
    }
    return result;
  }

  static std::vector<std::size_t> shape(const Node& node) {
    std::vector<std::size_t> sizes;
    for (const Node* at = &node; at->is(Kind::sequence); at = &at->items.front()) sizes.push_back(at->items.size());
    return sizes;
  }

  const Key& key_;
  const Reporter& reporter_;
};

}  // namespace

Node check_leaf(const Key& key, const Node& value, const Reporter& reporter) {
  const Leaf leaf(key, reporter);
  switch (key.type) {
    case Type::text: return leaf.text(value);
    case Type::texts: return leaf.texts(value);
    case Type::run_name: return leaf.run_name(value);
    case Type::layer_name: return leaf.layer_name(value);
    case Type::path: return leaf.path(value);
    case Type::paths: return leaf.list(value, 2, [&](const Node& item) { return leaf.path(item); });
    case Type::files: return leaf.files(value);
    case Type::npz_split: return leaf.split(value);
    case Type::word: return leaf.word(value);
    case Type::words: return leaf.words(value);
    case Type::boolean: return leaf.boolean(value);
    case Type::integer: return leaf.integer(value);
    case Type::seed: return leaf.seed(value);
    case Type::number: return leaf.number(value);
    case Type::duration:
    case Type::interval:
    case Type::amount: return check_duration(key, value, reporter);
    case Type::memory: return value.is(Kind::scalar) && parse_memory(value.text) ? value : leaf.wrong(value);
    case Type::durations: return leaf.durations(value);
    case Type::scales: return leaf.scales(value);
    case Type::integers: return leaf.list(value, key.length, [&](const Node& item) { return leaf.integer(item); });
    case Type::numbers: return leaf.numbers(value);
    case Type::range: return leaf.range(value);
    case Type::spread: return leaf.spread(value);
    case Type::matrix: return leaf.matrix(value);
    case Type::padding: return leaf.padding(value);
    case Type::axes: return check_axes(key, value, reporter);
    case Type::axis_names: return leaf.axis_names(value);
    case Type::tensors:
      if (!value.is(Kind::map)) return leaf.wrong(value);
      return leaf.tensors(value);
    case Type::varied: return value.is(Kind::map) ? value : leaf.wrong(value);
    case Type::choice: return leaf.number_or_choice(value);
    case Type::choices:
    case Type::map:
    case Type::maps: break;
  }
  return Node{};
}

}  // namespace pmaptrain::spec
