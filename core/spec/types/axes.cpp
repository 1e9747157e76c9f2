// Checks the axes of the mesh.
#include "core/base/text.h"
#include "core/spec/types/leaf.h"
#include "core/spec/yaml/report.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

void add_axis(const Node& item, const Reporter& reporter, Node& result) {
  const Node& name = item.keys.front();
  if (!is_identifier(name.text)) {
    reporter.report(name, "'" + name.text + "' is not a valid axis name",
                    "use letters, digits and '_', no digit first, such as data_shards");
    result.kind = Kind::invalid;
  }
  for (const Node& other : result.items) {
    if (other.keys.front().text != name.text) continue;
    reporter.report(name, "duplicate axis '" + name.text + "'", "give each axis a different name");
    result.kind = Kind::invalid;
  }
  const Key size{.path = name.text, .type = Type::integer, .low = 1, .high = 65536, .example = {}};
  Node checked;
  if (item.items.front().is(Kind::blank)) {
    checked = reporter.report(name, "'" + name.text + "' has no value", "write its size, such as 8");
  } else if (item.items.front().valid()) {
    checked = check_leaf(size, item.items.front(), reporter);
  }
  if (!checked.valid()) result.kind = Kind::invalid;
  Node axis = empty_at(item, Kind::map);
  axis.add(name, std::move(checked));
  result.items.push_back(std::move(axis));
}

// "{data:2, model:4}": to YAML these are names without values.
bool lacks_spaces(const Node& map) {
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    const std::size_t colon = map.keys[i].text.find(':');
    const bool is_name = map.items[i].is(Kind::blank) || map.items[i].is(Kind::null);
    if (!is_name || map.keys[i].quoted || colon == 0 || colon == std::string::npos) return false;
  }
  return true;
}

Node refuse_without_spaces(const Node& map, const Reporter& reporter) {
  std::vector<std::string> items;
  for (const Node& name : map.keys) {
    const std::size_t colon = name.text.find(':');
    items.push_back("{" + name.text.substr(0, colon) + ": " + name.text.substr(colon + 1) + "}");
  }
  const std::string written = items.size() == 1 ? items.front() : "[" + join(items, ", ") + "], outermost first";
  return reporter.report(map, "there is no space after the ':' of '" + map.keys.front().text + "'", "write " + written);
}

}  // namespace

Node check_axes(const Key& key, const Node& value, const Reporter& reporter) {
  if ((value.is(Kind::map) || value.is(Kind::sequence)) && value.items.empty())
    return empty_value(key, value, reporter);
  Node result = empty_at(value, Kind::sequence);
  if (value.is(Kind::map)) {
    if (lacks_spaces(value)) return refuse_without_spaces(value, reporter);
    if (value.keys.size() > 1) {
      std::vector<std::string> items;
      for (std::size_t i = 0; i < value.keys.size(); ++i) {
        items.push_back("{" + value.keys[i].text + ": " + value.items[i].text + "}");
      }
      return reporter.report(value, "several axes must be a list, because their order matters; this is a map",
                             "write [" + join(items, ", ") + "], outermost first");
    }
    add_axis(value, reporter, result);
  } else if (value.is(Kind::sequence)) {
    for (const Node& item : value.items) {
      if (!item.is(Kind::map) || item.keys.size() != 1) {
        result.kind = Kind::invalid;
        if (item.valid()) {
          reporter.report(item,
                          "an axis is a map of one name to its size, not " + describe(item) +
                              (item.is(Kind::map) ? " with " + std::to_string(item.keys.size()) + " keys" : ""),
                          "for example [{model_replicas: 2}, {data_shards: 4}]");
        }
        continue;
      }
      add_axis(item, reporter, result);
    }
  } else {
    return wrong_value(key, value, reporter);
  }
  if (result.items.size() > 32) return reporter.report(value, "a mesh has at most 32 axes", "");
  double devices = 1.0;
  for (const Node& axis : result.items) {
    if (axis.items.front().valid()) devices *= static_cast<double>(parse_integer(axis.items.front().text).value);
  }
  if (result.valid() && devices > 65536.0) {
    return reporter.report(value, "the mesh has more than 65,536 logical devices", "reduce the axis sizes");
  }
  return result;
}

}  // namespace pmaptrain::spec
