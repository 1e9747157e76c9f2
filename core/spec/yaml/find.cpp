#include "core/spec/yaml/find.h"

#include <algorithm>

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

bool in_option(const Node& node) { return node.source && node.source->option; }

}  // namespace

const Node* get(const Node* map, std::string_view key) {
  if (map == nullptr || !map->is(Kind::map)) return nullptr;
  const Node* found = map->find(key);
  return found != nullptr && found->valid() ? found : nullptr;
}

const Node* get_path(const Node* map, std::string_view path) {
  while (map != nullptr && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    map = get(map, path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return map;
}

bool is_index(std::string_view segment) {
  return !segment.empty() && segment.size() < 7 && segment.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string entry_name(const Node& entries, std::size_t index) {
  return entries.is(Kind::map) ? entries.keys[index].text : std::to_string(index);
}

const Node* overridden(const Node& node) {
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    // A default has the place of the map above it.
    if (node.items[i].fallback) continue;
    // A key says more than the braces behind it, a plain value more than its key.
    const bool named = i < node.keys.size() && !node.items[i].is(Kind::scalar);
    if (named && in_option(node.keys[i])) return &node.keys[i];
    if (const Node* found = overridden(node.items[i])) return found;
  }
  return in_option(node) ? &node : nullptr;
}

Place error_place(const Node& node) {
  const Node* option = overridden(node);
  return place_of(option != nullptr ? *option : node);
}

Place error_place(const Chosen& chosen) {
  if (in_option(*chosen.name)) return place_of(*chosen.name);
  const Node* option = overridden(*chosen.options);
  return place_of(option != nullptr ? *option : *chosen.name);
}

Place error_place(const Node* map, std::string_view key) {
  const Node* found = map != nullptr && map->is(Kind::map) ? map->find(key) : nullptr;
  return found != nullptr ? error_place(*found) : Place{};
}

}  // namespace pmaptrain::spec
