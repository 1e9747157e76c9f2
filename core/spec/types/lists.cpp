#include "core/spec/types/lists.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/spec/types/leaf.h"
#include "core/spec/types/number.h"
#include "core/spec/types/schema_text.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

std::string integers_text(const Key& key) { return list_of(key, "integer") + range_of(key, true); }

std::string integers_schema(const Key& key, Definitions& /*named*/) {
  return schema::list_of(schema::integer(key), least_items(key), key.length);
}

Node check_integers(const Key& key, const Node& value, const Reporter& reporter) {
  // Other libraries take 3 for [3, 3].
  if (value.is(Kind::scalar) && !value.quoted && key.length > 0) {
    const Number<std::int64_t> one = parse_integer(value.text);
    const auto number = static_cast<double>(one.value);
    if (one.ok() && number >= key.low && number <= key.high) {
      // Of one to three dimensions two are most often meant.
      const std::vector<std::string> all(key.least_length > 0 ? std::min<std::size_t>(key.length, 2) : key.length,
                                         std::to_string(one.value));
      return misspelt_value(key, value, "[" + join(all, ", ") + "]", reporter);
    }
  }
  return check_list(key, value, reporter, [&](const Node& item) { return check_integer(key, item, reporter); });
}

std::string numbers_text(const Key& key) {
  std::string text = "a list of numbers" + range_of(key, false);
  for (const std::string& word : key.words) text += " or '" + word + "'";
  return text;
}

std::string numbers_schema(const Key& key, Definitions& /*named*/) {
  std::vector<std::string> alternatives{schema::number(key), schema::list_of(schema::number(key), 1)};
  if (!key.words.empty()) alternatives.push_back(schema::words(key.words));
  return schema::any_of(alternatives);
}

Node check_numbers(const Key& key, const Node& value, const Reporter& reporter) {
  if (value.is(Kind::scalar) && has_word(key.words, value.text)) return value;
  Node result =
      check_list_or_one(key, value, reporter, [&](const Node& item) { return check_number(key, item, reporter); });
  return result.is(Kind::sequence) && result.items.empty() ? empty_value(key, value, reporter) : result;
}

// Weights by label, as Keras takes them: [1, 5] of {0: 1, 1: 5}. Empty where labels are not 0, 1, ...
std::string in_order_of_labels(const Node& map) {
  if (map.keys.empty()) return "";
  std::vector<std::string> weights;
  for (std::size_t label = 0; label < map.keys.size(); ++label) {
    const Node* const weight = map.find(std::to_string(label));
    if (weight == nullptr || !weight->is(Kind::scalar)) return "";
    weights.push_back(weight->text);
  }
  return "[" + join(weights, ", ") + "]";
}

Node check_weights(const Key& key, const Node& value, const Reporter& reporter) {
  if (value.is(Kind::map)) {
    const std::string weights = in_order_of_labels(value);
    return reporter.report(value, std::string(key.name()) + " takes " + takes(key) + ", not " + describe(value),
                           weights.empty() ? "one weight for each class, in their order: " + example_of(key)
                                           : "write " + weights + ", in the order of the classes");
  }
  Node result = check_numbers(key, value, reporter);
  const bool are_zero = result.is(Kind::sequence) &&
                        std::all_of(result.items.begin(), result.items.end(),
                                    [](const Node& item) { return item.valid() && parsed_as<double>(item) <= 0; });
  if (!are_zero) return result;
  return reporter.report(value, std::string(key.name()) + " are all 0, so nothing would count",
                         "at least one must be above 0; " + key.words.front() + " finds them in the training split");
}

std::string range_text(const Key& key) { return "a list of two numbers" + range_of(key, false) + ", the least first"; }

std::string range_schema(const Key& key, Definitions& /*named*/) { return schema::list_of(schema::number(key), 2, 2); }

Node check_range(const Key& key, const Node& value, const Reporter& reporter) {
  Node result =
      check_list(key, value, 2, reporter, [&](const Node& item) { return check_number(key, item, reporter); });
  if (!result.is(Kind::sequence)) return result;
  if (parsed_as<double>(result.items[0]) <= parsed_as<double>(result.items[1])) return result;
  const std::string &least = value.items[0].text, &greatest = value.items[1].text;
  return reporter.report(
      value, std::string(key.name()) + " begins with its least number, but " + least + " is more than " + greatest,
      "write [" + greatest + ", " + least + "]");
}

// One number of a spread.
Key distance_of(const Key& key) {
  Key distance = key;
  distance.low = 0;
  return distance;
}

std::string spread_text(const Key& key) {
  return "a number" + range_of(distance_of(key), false) + ", or " + range_text(key);
}

std::string spread_schema(const Key& key, Definitions& /*named*/) {
  return schema::any_of({schema::number(distance_of(key)), schema::list_of(schema::number(key), 2, 2)});
}

Node check_spread(const Key& key, const Node& value, const Reporter& reporter) {
  if (!value.is(Kind::scalar)) return check_range(key, value, reporter);
  const Number<double> number = parse_number(value.text);
  if (!number.ok() || value.quoted || number.value >= 0) return check_number(key, value, reporter);
  if (-number.value > key.high) return wrong_value(key, value, reporter);
  return reporter.report(value, std::string(key.name()) + " takes " + takes(key) + ", not " + describe(value),
                         "one number is a distance to both sides: write " + value.text.substr(1));
}

std::string matrix_text(const Key& /*key*/) { return "a list of lists of numbers"; }

std::string matrix_schema(const Key& key, Definitions& named) { return schema::list_of(numbers_schema(key, named), 1); }

Node check_matrix(const Key& key, const Node& value, const Reporter& reporter) {
  Node result = check_list(key, value, 0, reporter, [&](const Node& item) {
    return item.is(Kind::map) ? wrong_value(key, item, reporter) : check_numbers(key, item, reporter);
  });
  if (!result.is(Kind::sequence)) return result;
  if (result.items.empty()) return empty_value(key, value, reporter);
  const std::size_t columns = result.items.front().items.size();
  for (const Node& row : result.items) {
    if (row.items.size() == columns) continue;
    return reporter.report(row,
                           std::string(key.name()) + ": this example has " + std::to_string(row.items.size()) +
                               " numbers, the first has " + std::to_string(columns),
                           "all examples need the same number of values");
  }
  return result;
}

}  // namespace

constinit const Type Takes<std::vector<std::int64_t>>::type{integers_text, integers_schema, check_integers};
constinit const Type TakesNumbers::type{numbers_text, numbers_schema, check_numbers};
constinit const Type Takes<declare::ClassWeights>::type{numbers_text, numbers_schema, check_weights};
constinit const Type Takes<declare::Range>::type{range_text, range_schema, check_range};
constinit const Type Takes<declare::Spread>::type{spread_text, spread_schema, check_spread};
constinit const Type Takes<std::vector<std::vector<double>>>::type{matrix_text, matrix_schema, check_matrix};

void Takes<std::vector<std::int64_t>>::store(const Node& value, std::vector<std::int64_t>& out) {
  store_items<Takes<std::int64_t>>(value, out);
}

std::string Takes<std::vector<std::int64_t>>::written(const std::vector<std::int64_t>& values) {
  std::vector<std::string> items;
  items.reserve(values.size());
  for (const std::int64_t value : values) items.push_back(std::to_string(value));
  return "[" + join(items, ", ") + "]";
}

void Takes<std::vector<double>>::store(const Node& value, std::vector<double>& out) {
  store_items<Takes<double>>(value, out);
}

void Takes<declare::ClassWeights>::store(const Node& value, declare::ClassWeights& out) {
  out.balanced = value.is(Kind::scalar);
  if (!out.balanced) Takes<std::vector<double>>::store(value, out.each);
}

void Takes<declare::Range>::store(const Node& value, declare::Range& out) {
  Takes<double>::store(value.items[0], out.low);
  Takes<double>::store(value.items[1], out.high);
}

std::string Takes<declare::Range>::written(const declare::Range& range) {
  return "[" + exact(range.low) + ", " + exact(range.high) + "]";
}

void Takes<declare::Spread>::store(const Node& value, declare::Spread& out) {
  out = {};
  if (value.is(Kind::scalar)) {
    Takes<double>::store(value, out.distance);
  } else {
    Takes<declare::Range>::store(value, out.range.emplace());
  }
}

std::string Takes<declare::Spread>::written(const declare::Spread& spread) {
  return spread.range ? Takes<declare::Range>::written(*spread.range) : exact(spread.distance);
}

void Takes<std::vector<std::vector<double>>>::store(const Node& value, std::vector<std::vector<double>>& out) {
  store_items<Takes<std::vector<double>>>(value, out);
}

}  // namespace pmaptrain::spec
