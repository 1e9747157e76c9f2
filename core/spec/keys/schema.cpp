// The table of keys as a JSON Schema (draft 2020-12), with which editors complete, explain and check a config.
#include "core/spec/keys/schema.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/spec/keys.h"
#include "core/spec/types/schema_text.h"
#include "core/spec/yaml/parse.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

using Json = nlohmann::ordered_json;

Json any_of(Json alternatives) { return {{"anyOf", std::move(alternatives)}}; }

Json list_of(Json items, std::size_t least) {
  Json list{{"type", "array"}, {"items", std::move(items)}};
  if (least > 0) list["minItems"] = least;
  return list;
}

Json words(const std::vector<std::string>& all) { return {{"enum", all}}; }

Json to_json(const Node& node, TypeOf type) {
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

// One key against another, as far as a schema can say it. core/spec/bind says the same.
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
       "then": {"properties": {"train": {"type": ["array", "object"]}, "validation": {"type": ["array", "object", "null"]}, "test": {"type": ["array", "object", "null"]}, "inputs": {"type": "null"}, "targets": {"type": "null"}, "lengths": {"type": "null"}}},
       "else": {"required": ["inputs", "targets"], "properties": {"train": {"not": {"type": ["array", "object"]}}, "validation": {"not": {"type": ["array", "object"]}}, "test": {"not": {"type": ["array", "object"]}}, "inputs": {"not": {"type": "null"}}, "targets": {"not": {"type": "null"}}}}})"},
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

  // null means a key's default; for an alternative, the defaults of all of its options.
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
    if (key.type == Type::map) return map_or_shorthand(key);
    if (key.type == Type::choice) return named_choice(key);
    if (key.type == Type::choices) return choices(key);
    if (key.type == Type::maps) return list_of(map(key), 0);
    if (key.type == Type::entries) return entries(key);
    Definitions named;
    Json value = parse_json(key.type->schema(key, named));
    for (const auto& [name, definition] : named) definitions_[name] = parse_json(definition);
    return value;
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
      if (rule.path == key.path) map["allOf"] = Json::array({parse_json(rule.rule)});
    }
    return map;
  }

  Json map_or_shorthand(const Key& key) {
    for (const Key* other : children(key)) {
      if (other->shorthand) return any_of({value_of(*other), map(key)});
    }
    return key.words.empty() ? map(key) : any_of({words(key.words), map(key)});
  }

  Json entries(const Key& key) {
    const Json each = property(*child(key, ""));
    Json map{{"type", "object"}, {"minProperties", 1}, {"additionalProperties", each}};
    map["propertyNames"] = {{"pattern", schema::identifier}};
    return any_of({std::move(map), list_of(each, 1)});
  }

  // A bare name if nothing else is needed, or a map with exactly one alternative and further keys.
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
    if (key.or_number) bare.push_back(parse_json(schema::number(key)));
    return bare.size() == 1 ? bare.front() : any_of(std::move(bare));
  }

  // Choices that other keys are like have a name.
  Json named_choice(const Key& key) {
    if (!key.like.empty()) return reference(key.like);
    const auto all = keys();
    if (std::none_of(all.begin(), all.end(), [&](const Key& other) { return other.like == key.path; })) {
      return choice(key);
    }
    definitions_[std::string(key.name())] = choice(key);
    return reference(key.path);
  }

  static Json reference(std::string_view path) { return {{"$ref", "#/$defs/" + std::string(find_key(path)->name())}}; }

  // Lists that may contain themselves have a name.
  Json choices(const Key& key) {
    const bool may_be_empty = key.fallback == "[]";
    if (!key.like.empty()) {
      if (find_key(key.like)->type != Type::choices) return list_of(reference(key.like), 1);
      if (!may_be_empty) return reference(key.like);
      return any_of({reference(key.like), Json{{"type", "array"}, {"maxItems", 0}}});
    }
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

std::string json_schema() { return json_text(SchemaWriter().root(), 2) + "\n"; }

}  // namespace pmaptrain::spec
