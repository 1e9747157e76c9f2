#include "core/spec/sweep/joint_choice.h"

#include <algorithm>
#include <vector>

#include "core/base/text.h"
#include "core/spec/keys.h"
#include "core/spec/print.h"

namespace pmaptrain::spec {
namespace {

bool is_alternative(const Key& key, const std::string& name) {
  const Key* const found = child(key, name);
  return found != nullptr && found->need == Need::alternative;
}

// The map of keys of one value; empty where it is no alternative.
std::string as_keys(const Key& key, const Node& value) {
  if (value.is(Node::Kind::scalar)) {
    return is_alternative(key, value.text) ? "{" + key.path + "." + value.text + ": {}}" : "";
  }
  if (!value.is(Node::Kind::map)) return "";
  std::vector<std::string> parts;
  bool has_alternative = false;
  for (std::size_t i = 0; i < value.keys.size(); ++i) {
    const std::string& name = value.keys[i].text;
    if (child(key, name) == nullptr) return "";
    has_alternative = has_alternative || is_alternative(key, name);
    const bool is_plain = value.items[i].is(Node::Kind::blank) || value.items[i].is(Node::Kind::null);
    parts.push_back(key.path + "." + name + ": " + (is_plain ? "{}" : print_value(value.items[i])));
  }
  return has_alternative ? "{" + join(parts, ", ") + "}" : "";
}

}  // namespace

std::string joint_choice(const std::string& name, const Key& key, std::span<const Node> values) {
  if (key.type != Type::choice) return "";
  std::vector<std::string> maps;
  for (const Node& value : values) {
    maps.push_back(as_keys(key, value));
    if (maps.back().empty()) return "";
  }
  return name + ": {choice: [" + join(maps, ", ") + "]}";
}

std::string joint_choice(const std::string& name, std::span<const Node> values) {
  for (const Key* const key : children(root_key())) {
    if (std::string text = joint_choice(name, *key, values); !text.empty()) return text;
  }
  return "";
}

std::string joint_name(const Key& key) { return key.path == "optimizer" ? "opt" : "kind"; }

}  // namespace pmaptrain::spec
