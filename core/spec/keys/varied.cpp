// The type of ensemble.vary: a map of keys to lists of their values. What the keys take is checked by
// bind/ensemble.cpp, when it is known which keys a config has.
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/spec/keys.h"
#include "core/spec/types/leaf.h"
#include "core/spec/types/schema_text.h"

namespace pmaptrain::spec {
namespace {

bool is_in_list(const Key& key) {
  for (std::size_t dot = key.path.find('.'); dot != std::string::npos; dot = key.path.find('.', dot + 1)) {
    const TypeOf above = find_key(key.path.substr(0, dot))->type;
    if (above == Type::choices || above == Type::maps) return true;
  }
  return key.type == Type::scales;
}

std::string varied_text(const Key& /*key*/) { return "a map of keys to lists with one value for each member"; }

// Dotted keys, or nested maps of their parts. Of items of lists and in nested maps, the ranges are beyond a schema, but
// for seeds, which alone are called so.
std::string varied_schema(const Key& /*key*/, Definitions& named) {
  std::string map = R"({"$ref": "#/$defs/varied"})";
  std::vector<std::string> dotted;
  for (const Key& key : keys()) {
    if (!key.varies || is_in_list(key)) continue;
    const TypeOf type = key.or_number ? TypeOf(Type::number) : key.type;
    dotted.push_back(schema::string(key.path) + ": " + schema::list_of(type->schema(key, named), 1));
  }
  const std::string seeds = schema::list_of(Type::seed.schema(root_key(), named), 1);
  named.emplace_back("varied", R"({"type": "object", "properties": {)" + join(dotted, ", ") +
                                   R"(}, "patternProperties": {"(^|\\.)seed$": )" + schema::any_of({seeds, map}) +
                                   R"(}, "additionalProperties": )" +
                                   schema::any_of({schema::list_of(R"({"type": "number"})", 1), map}) +
                                   R"(, "minProperties": 1})");
  return map;
}

Node check_varied(const Key& key, const Node& value, const Reporter& reporter) {
  return value.is(Node::Kind::map) ? value : wrong_value(key, value, reporter);
}

}  // namespace

constinit const Type Type::varied{varied_text, varied_schema, check_varied};

}  // namespace pmaptrain::spec
