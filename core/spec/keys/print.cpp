#include "core/spec/print.h"

#include <vector>

#include "core/base/text.h"
#include "core/spec/keys.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

constexpr std::size_t longest_flow = 100;

// A choice without further keys may be written as a bare name instead of `{name: {}}`.
bool is_bare_choice(const Key* key, const Node& node) {
  return key != nullptr && (key->type == Type::choice || key->type == Type::choices) && node.is(Kind::map) &&
         node.keys.size() == 1 && node.items[0].is(Kind::map) && node.items[0].items.empty() &&
         child(*key, node.keys[0].text)->type == Type::map;
}

void print(const Key& parent, const Node& map, std::size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  for (std::size_t i = 0; i < map.items.size(); ++i) {
    const Node& value = map.items[i];
    const Key* key = child(parent, map.keys[i].text);
    const std::string head = margin + print_text(map.keys[i].text) + ":";
    if (indent == 0 && value.is(Kind::map) && !out.empty()) out += "\n";
    if (is_bare_choice(key, value)) {
      out += head + " " + print_text(value.keys[0].text) + "\n";
    } else if (key != nullptr && key->type == Type::axes && value.items.size() == 1) {
      out += head + " " + print_value(value.items[0]) + "\n";
    } else if (key != nullptr && key->type == Type::choices && child(*key, "name") == nullptr) {
      std::vector<std::string> items;
      for (const Node& item : value.items)
        items.push_back(is_bare_choice(key, item) ? print_text(item.keys[0].text) : print_value(item));
      out += head + " [" + join(items, ", ") + "]\n";
    } else if (key != nullptr && key->type == Type::choices) {
      out += head + "\n";
      for (const Node& item : value.items) out += margin + "  - " + print_value(item) + "\n";
    } else if (value.is(Kind::map) && key != nullptr && !value.items.empty() &&
               (indent == 0 || (key->type == Type::choice && print_value(value).size() > longest_flow))) {
      out += head + "\n";
      print(*key, value, indent + 2, out);
    } else {
      out += head + " " + print_value(value) + "\n";
    }
  }
}

}  // namespace

std::string print_config(const Node& config) {
  std::string out;
  print(root_key(), config, 0, out);
  return out;
}

}  // namespace pmaptrain::spec
