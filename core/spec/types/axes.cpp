#include "core/spec/types/axes.h"

#include "core/base/text.h"
#include "core/spec/types/leaf.h"
#include "core/spec/types/number.h"
#include "core/spec/types/schema_text.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

std::string axes_text(const Key& /*key*/) { return "a map of one axis to its size, or a list of such maps"; }

std::string axes_schema(const Key& /*key*/, Definitions& /*named*/) {
  const std::string axis = R"({"type": "object", "propertyNames": {"pattern": )" + schema::string(schema::identifier) +
                           R"(}, "additionalProperties": {"type": "integer", "minimum": 1, "maximum": 65536}, )" +
                           R"("minProperties": 1, "maxProperties": 1})";
  return schema::any_of({axis, schema::list_of(axis, 1, 32)});
}

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
    checked = check_integer(size, item.items.front(), reporter);
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

Node check_axes(const Key& key, const Node& value, const Reporter& reporter) {
  if ((value.is(Kind::map) || value.is(Kind::sequence)) && value.items.empty()) {
    return empty_value(key, value, reporter);
  }
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
    if (axis.items.front().valid()) devices *= static_cast<double>(parsed_as<std::int64_t>(axis.items.front()));
  }
  if (result.valid() && devices > 65536.0) {
    return reporter.report(value, "the mesh has more than 65,536 logical devices", "reduce the axis sizes");
  }
  return result;
}

std::string axis_names_text(const Key& /*key*/) { return "the name of an axis, or a list of names of axes"; }
std::string axis_names_schema(const Key& key, Definitions& /*named*/) {
  return schema::any_of({schema::text(), schema::list_of(schema::text(), key.fallback == "[]" ? 0 : 1)});
}

Node check_axis_names(const Key& key, const Node& value, const Reporter& reporter) {
  if (value.is(Kind::scalar)) {
    Node list = empty_at(value, Kind::sequence);
    list.items.push_back(value);
    return list;
  }
  return check_list(key, value, 0, reporter,
                    [&](const Node& item) { return item.is(Kind::scalar) ? item : wrong_value(key, item, reporter); });
}

}  // namespace

constinit const Type Type::axes{axes_text, axes_schema, check_axes};
constinit const Type Type::axis_names{axis_names_text, axis_names_schema, check_axis_names};

void Takes<Mesh>::store(const Node& value, Mesh& out) {
  std::vector<Axis> axes;
  for (const Node& axis : value.items) {
    axes.push_back(Axis{axis.keys.front().text, parsed_as<std::int64_t>(axis.items.front())});
  }
  out = Mesh(std::move(axes));
}

void Takes<declare::AxisNames>::store(const Node& value, declare::AxisNames& out) {
  out.names.clear();
  for (const Node& name : value.items) out.names.push_back(name.text);
}

std::string Takes<declare::AxisNames>::written(const declare::AxisNames& axes) {
  return "[" + join(axes.names, ", ") + "]";
}

}  // namespace pmaptrain::spec
