// The table of keys as a JSON Schema (draft 2020-12), with which editors complete, explain and check a config.
#include "core/spec/keys/schema.h"

#include <algorithm>
#include <cfloat>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/text.h"
#include "core/spec/keys.h"
#include "core/spec/types/takes.h"
#include "core/spec/yaml/parse.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

using Json = nlohmann::ordered_json;

// The pattern of names of axes and layers.
constexpr const char* identifier = "^[A-Za-z_][A-Za-z0-9_]*$";

// Control characters and bidirectional marks, which names must not contain, for use inside brackets of a pattern.
const std::string unseen = "\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069";

Json any_of(Json alternatives) { return {{"anyOf", std::move(alternatives)}}; }

Json list_of(Json items, std::size_t least, std::size_t most = 0) {
  Json list{{"type", "array"}, {"items", std::move(items)}};
  if (least > 0) list["minItems"] = least;
  if (most > 0) list["maxItems"] = most;
  return list;
}

Json pair_of(Json first, Json second) {
  return {{"type", "array"}, {"prefixItems", {std::move(first), std::move(second)}}, {"minItems", 2}, {"maxItems", 2}};
}

Json words(const std::vector<std::string>& all) { return {{"enum", all}}; }

// What a config takes as text: also 7 and true, which it does not read as a number or a truth value.
Json text() { return {{"type", {"string", "number", "boolean"}}, {"minLength", 1}}; }

// A bound as an integer if it is one.
Json bound(double value) {
  const auto whole = static_cast<std::int64_t>(std::clamp(value, -1e15, 1e15));
  const bool is_whole = !(static_cast<double>(whole) < value) && !(static_cast<double>(whole) > value);
  return is_whole ? Json(whole) : Json(value);
}

Json range(const char* type, const Key& key, double limit) {
  return {{"type", type},
          {key.open_low ? "exclusiveMinimum" : "minimum", bound(std::max(key.low, -limit))},
          {key.open_high ? "exclusiveMaximum" : "maximum", bound(std::min(key.high, limit))}};
}

Json integer(const Key& key) { return range("integer", key, largest_integer); }
// Parameters and data are float32.
Json number(const Key& key) { return range("number", key, static_cast<double>(FLT_MAX)); }

Json seed() { return {{"type", "integer"}, {"minimum", 0}, {"maximum", std::numeric_limits<std::uint64_t>::max()}}; }

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

// A count and its unit, which steps and examples need not have.
Json duration(const Key& key, bool never) {
  Json alternatives = Json::array();
  if (key.steps) alternatives.push_back({{"type", "integer"}, {"minimum", 1}, {"maximum", bound(largest_integer)}});
  const std::string unit = "(?:" + join(units_of(key), "|") + ")" + (key.steps ? "?" : "");
  alternatives.push_back({{"type", "string"}, {"pattern", "^\\+?(?:" + count_pattern() + ") *" + unit + "$"}});
  if (never) alternatives.push_back({{"const", "never"}});
  return any_of(std::move(alternatives));
}

Json axes() {
  const Json size{{"type", "integer"}, {"minimum", 1}, {"maximum", 65536}};
  const Json axis{{"type", "object"},
                  {"propertyNames", {{"pattern", identifier}}},
                  {"additionalProperties", size},
                  {"minProperties", 1},
                  {"maxProperties", 1}};
  return any_of({axis, list_of(axis, 1, 32)});
}

Json to_json(const Node& node, Type type) {
  if (node.is(Node::Kind::sequence)) {
    Json list = Json::array();
    for (const Node& item : node.items) list.push_back(to_json(item, type));
    return list;
  }
  if (node.is(Node::Kind::map)) {
    Json map = Json::object();
    for (std::size_t i = 0; i < node.keys.size(); ++i) map[node.keys[i].text] = to_json(node.items[i], type);
    return map;
  }
  if (type == Type::seed) return parse_seed(node.text).value;
  if (type != Type::number && parse_integer(node.text).ok()) return parse_integer(node.text).value;
  if (parse_number(node.text).ok()) return parse_number(node.text).value;
  if (const auto truth = parse_boolean(node.text)) return *truth;
  return node.text;
}

// One key against another, as far as a schema can say it. bind.cpp says the same.
struct Rule {
  std::string_view path;  // of the map that has both
  const char* rule;
};
constexpr const char* nesterov_rule = R"({
       "if": {"required": ["nesterov"], "properties": {"nesterov": {"const": true}}},
       "then": {"required": ["momentum"], "properties": {"momentum": {"type": "number", "exclusiveMinimum": 0}}}})";
constexpr Rule rules[] = {
    {"data", R"({"oneOf": [
       {"required": ["batch_size"], "properties": {"batch_size": {"not": {"type": "null"}}, "batch_size_per_device": {"type": "null"}}},
       {"required": ["batch_size_per_device"], "properties": {"batch_size_per_device": {"not": {"type": "null"}}, "batch_size": {"type": "null"}}}]})"},
    {"data.source.npz", R"({
       "if": {"required": ["file"], "properties": {"file": {"not": {"type": "null"}}}},
       "then": {"properties": {"train": {"type": "array"}, "validation": {"type": ["array", "null"]}, "test": {"type": ["array", "null"]}, "inputs": {"type": "null"}, "targets": {"type": "null"}}},
       "else": {"required": ["inputs", "targets"], "properties": {"train": {"not": {"type": "array"}}, "validation": {"not": {"type": "array"}}, "test": {"not": {"type": "array"}}, "inputs": {"not": {"type": "null"}}, "targets": {"not": {"type": "null"}}}}})"},
    {"optimizer.sgd", nesterov_rule},
    {"optimizer.rmsprop", nesterov_rule},
    {"optimizer.groups", R"({
       "if": {"required": ["freeze"], "properties": {"freeze": {"const": true}}},
       "then": {"properties": {"learning_rate_scale": {"type": "null"}, "weight_decay": {"type": "null"}}}})"},
};

class SchemaWriter {
 public:
  Json root() {
    Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                {"title", schema_title},
                {"description",
                 "Generated from the table of keys that also validates a config. pmaptrain validate CONFIG has further "
                 "checks, for example that the batch divides over the devices."}};
    schema.update(map(root_key()));
    schema["patternProperties"] = {{"^x-", {{"description", "Ignored; may hold YAML anchors."}}}};
    if (!definitions_.empty()) schema["$defs"] = definitions_;
    return schema;
  }

 private:
  // The schema of the value of a key, with a description.
  Json property(const Key& key) {
    Json described{{"description", description(key)}};
    Json value = value_of(key);
    if (takes_null(key)) value = or_null(std::move(value));
    described.update(value);
    if (!key.fallback.empty()) described["default"] = to_json(parse_own(std::string(key.fallback)), key.type);
    return described;
  }

  static std::string description(const Key& key) {
    std::string text(key.meaning);
    if (key.need != Need::alternative) text += "\n\nValue: " + takes(key) + "; " + fallback_of(key) + ".";
    if (!key.example.empty()) text += "\n\nFor example:\n" + std::string(key.example);
    return text;
  }

  static bool has_required(const Key& key) {
    const std::vector<const Key*> below = children(key);
    return std::any_of(below.begin(), below.end(), [](const Key* one) { return one->need == Need::required; });
  }

  // null stands for a key's default; for an alternative, for all of its options' defaults.
  static bool takes_null(const Key& key) {
    if (key.need == Need::alternative) return key.type == Type::map && !has_required(key);
    return key.need == Need::optional;
  }

  static Json or_null(Json value) {
    if (value.contains("anyOf")) {
      value["anyOf"].push_back({{"type", "null"}});
    } else if (value.contains("enum")) {
      value["enum"].push_back(nullptr);
    } else if (value.contains("$ref") || value.contains("oneOf")) {
      value = any_of({value, {{"type", "null"}}});
    } else {
      Json types = value["type"].is_array() ? value["type"] : Json::array({value["type"]});
      types.push_back("null");
      value["type"] = types;
    }
    return value;
  }

  Json value_of(const Key& key) {
    switch (key.type) {
      case Type::map: return map_or_shorthand(key);
      case Type::choice: return named_choice(key);
      case Type::choices: return choices(key);
      case Type::maps: return list_of(map(key), 0);
      case Type::text:
      case Type::path: return text();
      case Type::texts: return any_of({text(), list_of(text(), key.need == Need::required ? 1 : 0)});
      case Type::run_name:
        return {{"type", {"string", "number", "boolean"}},
                {"pattern", "^(?![- ])(?!\\.{1,2}$)[^/" + unseen + "]*[^/ " + unseen + "]$"},
                {"maxLength", 200},
                {"minimum", 0}};
      case Type::layer_name: return {{"type", {"string", "boolean"}}, {"pattern", identifier}};
      case Type::paths: return list_of(text(), 2, 2);
      case Type::files: return any_of({text(), list_of(text(), 1)});
      case Type::npz_split: return any_of({text(), list_of(text(), 2, 2)});
      case Type::word: return words(key.words);
      case Type::words:
        return any_of({words(key.words),
                       {{"type", "object"}, {"additionalProperties", words(key.item_words)}, {"minProperties", 1}}});
      case Type::boolean: return {{"type", "boolean"}};
      case Type::integer: return key.words.empty() ? integer(key) : any_of({integer(key), words(key.words)});
      case Type::seed: return seed();
      case Type::number: return number(key);
      case Type::duration: return duration(key, false);
      case Type::interval: return duration(key, true);
      case Type::amount: return duration(key, false);
      case Type::memory: return {{"type", "string"}, {"pattern", "^[1-9][0-9]{0,5} ?(MiB|GiB|TiB)$"}};
      case Type::durations: return list_of(duration(key, false), 0);
      case Type::scales: return list_of(pair_of(duration(key, false), number(key)), 0);
      case Type::integers:
        return key.length == 0 ? list_of(integer(key), 0) : list_of(integer(key), key.length, key.length);
      case Type::numbers: return numbers(key);
      case Type::range: return list_of(number(key), 2, 2);
      case Type::spread: {
        Key distance = key;
        distance.low = 0;
        return any_of({number(distance), list_of(number(key), 2, 2)});
      }
      case Type::matrix: return list_of(numbers(key), 1);
      case Type::padding: return any_of({words({"SAME", "VALID"}), list_of(list_of(integer(key), 2, 2), 2, 2)});
      case Type::axes: return axes();
      case Type::axis_names: return list_of(text(), 1);
      case Type::tensors: return tensors(key);
      case Type::varied: return varied();
    }
    return {};
  }

  static Json numbers(const Key& key) {
    Json alternatives{number(key), list_of(number(key), 1)};
    if (!key.words.empty()) alternatives.push_back(words(key.words));
    return any_of(std::move(alternatives));
  }

  // Nested maps of nested lists, which is why they have names of their own.
  Json tensors(const Key& key) {
    const Json tensor{{"$ref", "#/$defs/tensor"}};
    Json map{{"$ref", "#/$defs/tensors"}};
    definitions_["tensor"] = any_of({number(key), list_of(tensor, 1)});
    definitions_["tensors"] = {{"type", "object"}, {"additionalProperties", any_of({tensor, map})}};
    return map;
  }

  // Dotted keys, or nested maps of their parts. Of items of lists and in nested maps, the ranges are beyond a schema,
  // but for seeds, which alone are called so.
  Json varied() {
    Json map{{"$ref", "#/$defs/varied"}};
    Json dotted = Json::object();
    for (const Key& key : keys()) {
      if (!key.varies || is_in_list(key)) continue;
      dotted[key.path] = list_of(key.type == Type::seed      ? seed()
                                 : key.type == Type::integer ? integer(key)
                                                             : number(key),
                                 1);
    }
    definitions_["varied"] = {{"type", "object"},
                              {"properties", std::move(dotted)},
                              {"patternProperties", {{"(^|\\.)seed$", any_of({list_of(seed(), 1), map})}}},
                              {"additionalProperties", any_of({list_of({{"type", "number"}}, 1), map})},
                              {"minProperties", 1}};
    return map;
  }

  static bool is_in_list(const Key& key) {
    for (std::size_t dot = key.path.find('.'); dot != std::string::npos; dot = key.path.find('.', dot + 1)) {
      const Type above = find_key(key.path.substr(0, dot))->type;
      if (above == Type::choices || above == Type::maps) return true;
    }
    return key.type == Type::scales;
  }

  Json map(const Key& key) {
    Json map{{"type", "object"}, {"properties", Json::object()}};
    Json required = Json::array();
    for (const Key* other : children(key)) {
      map["properties"][std::string(other->name())] = property(*other);
      if (other->need == Need::required) required.push_back(other->name());
    }
    if (!required.empty()) map["required"] = required;
    map["additionalProperties"] = false;
    for (const Rule& rule : rules) {
      if (rule.path == key.path) map["allOf"] = Json::array({Json::parse(rule.rule)});
    }
    return map;
  }

  Json map_or_shorthand(const Key& key) {
    for (const Key* other : children(key)) {
      if (other->shorthand) return any_of({value_of(*other), map(key)});
    }
    return key.words.empty() ? map(key) : any_of({words(key.words), map(key)});
  }

  // A bare name, where nothing else is needed, or a map with exactly one alternative and the keys beside it.
  Json choice(const Key& key) {
    Json bare = Json::array(), one = Json::array();
    for (const Key* other : alternatives(key)) {
      one.push_back({{"required", {other->name()}}});
      if (has_required(key) || other->type != Type::map || has_required(*other)) continue;
      bare.push_back({{"const", other->name()}, {"description", other->meaning}});
    }
    Json full = map(key);
    full["oneOf"] = std::move(one);
    bare.push_back(std::move(full));
    if (key.or_number) bare.push_back(number(key));
    return bare.size() == 1 ? bare.front() : any_of(std::move(bare));
  }

  // Choices that stand in themselves have a name.
  Json named_choice(const Key& key) {
    const auto all = keys();
    if (std::none_of(all.begin(), all.end(), [&](const Key& other) { return other.like == key.path; })) {
      return choice(key);
    }
    definitions_[std::string(key.name())] = choice(key);
    return reference(key.path);
  }

  static Json reference(std::string_view path) { return {{"$ref", "#/$defs/" + std::string(find_key(path)->name())}}; }

  // Lists that may stand in themselves have a name.
  Json choices(const Key& key) {
    if (!key.like.empty()) {
      const bool list = find_key(key.like)->type == Type::choices;
      return list ? reference(key.like) : list_of(reference(key.like), 1);
    }
    const bool may_be_empty = key.fallback == "[]";
    Json list = list_of(choice(key), may_be_empty ? 0 : 1);
    if (may_be_empty) list["uniqueItems"] = true;
    const auto all = keys();
    if (std::none_of(all.begin(), all.end(), [&](const Key& other) { return other.like == key.path; })) return list;
    definitions_[std::string(key.name())] = std::move(list);
    return reference(key.path);
  }

  Json definitions_ = Json::object();
};

}  // namespace

std::string json_schema() { return SchemaWriter().root().dump(2) + "\n"; }

}  // namespace pmaptrain::spec
