#include "core/spec/types/tensors.h"

#include <vector>

#include "core/spec/types/leaf.h"
#include "core/spec/types/number.h"
#include "core/spec/types/schema_text.h"
#include "core/spec/yaml/find.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

std::string tensors_text(const Key& /*key*/) { return "a map of parameters to nested lists of numbers"; }

// Nested maps of nested lists, which is why they have names of their own.
std::string tensors_schema(const Key& key, Definitions& named) {
  const std::string tensor = R"({"$ref": "#/$defs/tensor"})";
  std::string map = R"({"$ref": "#/$defs/tensors"})";
  named.emplace_back("tensor", schema::any_of({schema::number(key), schema::list_of(tensor, 1)}));
  named.emplace_back("tensors", R"({"type": "object", "additionalProperties": )" + schema::any_of({tensor, map}) + "}");
  return map;
}

std::vector<std::size_t> shape(const Node& node) {
  std::vector<std::size_t> sizes;
  for (const Node* at = &node; at->is(Kind::sequence); at = &at->items.front()) sizes.push_back(at->items.size());
  return sizes;
}

Node check_tensor(const Key& key, const Node& value, const Reporter& reporter) {
  if (value.is(Kind::scalar)) return check_number(key, value, reporter);
  if (!value.is(Kind::sequence)) return wrong_value(key, value, reporter);
  if (value.items.empty()) return reporter.report(value, "this tensor is empty", "write at least one");
  Node result = empty_at(value, Kind::sequence);
  for (const Node& item : value.items) {
    result.items.push_back(item.valid() ? check_tensor(key, item, reporter) : item);
    if (!result.items.back().valid()) result.kind = Kind::invalid;
  }
  if (!result.valid()) return result;
  for (const Node& item : result.items) {
    if (shape(item) == shape(result.items.front())) continue;
    return reporter.report(item, "the shape of this row differs from that of the first row",
                           "all lists of the same nesting level must have the same length");
  }
  return result;
}

Node check_named(const Key& key, const Node& map, const Reporter& reporter) {
  Node result = empty_at(map, Kind::map);
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    const Node &name = map.keys[i], &value = map.items[i];
    Node checked = value.is(Kind::blank) ? reporter.report(name, "'" + name.text + "' has no value",
                                                           "write its numbers, such as [0.0, 1.0]")
                   : value.is(Kind::map) ? check_named(key, value, reporter)
                                         : check_tensor(key, value, reporter);
    if (!checked.valid()) result.kind = Kind::invalid;
    result.add(name, std::move(checked));
  }
  return result;
}

Node check_tensors(const Key& key, const Node& value, const Reporter& reporter) {
  return value.is(Kind::map) ? check_named(key, value, reporter) : wrong_value(key, value, reporter);
}

void flatten(const Node& node, std::vector<double>& out) {
  if (node.is(Kind::scalar)) return Takes<double>::store(node, out.emplace_back());
  for (const Node& item : node.items) flatten(item, out);
}

void add_tensors(const Node& node, const std::string& prefix, std::map<std::string, declare::Tensor>& out) {
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const std::string path = prefix.empty() ? node.keys[i].text : prefix + "." + node.keys[i].text;
    const Node& value = node.items[i];
    if (value.is(Kind::map)) {
      add_tensors(value, path, out);
      continue;
    }
    declare::Tensor tensor;
    tensor.place = overridden(value) != nullptr ? error_place(value) : place_of(node.keys[i]);
    for (const Node* at = &value; at->is(Kind::sequence); at = &at->items.front()) {
      tensor.shape.push_back(static_cast<std::int64_t>(at->items.size()));
    }
    flatten(value, tensor.values);
    out.emplace(path, std::move(tensor));
  }
}

}  // namespace

constinit const Type Type::tensors{tensors_text, tensors_schema, check_tensors};

void Takes<std::map<std::string, declare::Tensor>>::store(const Node& value,
                                                          std::map<std::string, declare::Tensor>& out) {
  add_tensors(value, "", out);
}

}  // namespace pmaptrain::spec
