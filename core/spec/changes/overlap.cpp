#include "core/spec/changes/overlap.h"

#include <algorithm>
#include <utility>

#include "core/spec/keys.h"
#include "core/spec/rows/sections.h"
#include "core/spec/yaml/find.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

// The position of the item that a segment addresses; none if there is no such item.
std::optional<std::size_t> position_of(const Node& list, const Key* key, const std::string& segment) {
  if (is_index(segment)) return static_cast<std::size_t>(std::stoi(segment));
  std::map<std::string, int> counts;
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const Node& item = list.items[i];
    const bool is_named = key != nullptr && key->type == Type::choices && item_name(item, *key, counts) == segment;
    const bool is_axis = key != nullptr && key->type == Type::axes && item.find(segment) != nullptr;
    if (is_named || is_axis) return i;
  }
  return std::nullopt;
}

// The key of a segment below `key`; that of a list is also the key of its items.
const Key* key_below(const Key* key, const std::string& segment) {
  if (key == nullptr) return nullptr;
  if (const Key* const next = child(*key, segment)) return next;
  return is_index(segment) && (key->type == Type::choices || key->type == Type::maps) ? key : nullptr;
}

}  // namespace

std::string item_name(const Node& item, const Key& key, std::map<std::string, int>& counts) {
  std::string kind = item.text;
  for (const Node& name : item.keys) {
    const Key* option = child(key, name.text);
    if (option != nullptr && option->need == Need::alternative) kind = name.text;
  }
  if (child(key, "name") == nullptr) return kind;
  const std::string automatic = kind + "_" + std::to_string(counts[kind]++);
  const Node* given = item.find("name");
  return given != nullptr && given->is(Kind::scalar) ? given->text : automatic;
}

bool are_one_setting(const Key& a, const Key& b) {
  const auto is_batch_size = [](const Key& key) {
    return key.path == "data.batch_size" || key.path == "data.batch_size_per_device";
  };
  return is_batch_size(a) && is_batch_size(b);
}

ItemPath item_path(const Node& config, std::span<const Node> segments) {
  ItemPath path;
  const Node* at = &config;
  const Key* key = &root_key();
  for (const Node& node : segments) {
    std::string segment = node.text;
    if (at != nullptr && at->is(Kind::sequence)) {
      const std::optional<std::size_t> position = position_of(*at, key, segment);
      at = position && *position < at->items.size() ? &at->items[*position] : nullptr;
      if (position) segment = std::to_string(*position);
      if (at != nullptr && key != nullptr && key->type == Type::axes && !is_index(node.text)) {
        path.push_back(std::exchange(segment, node.text));
        at = at->find(segment);
      }
    } else {
      if (is_index(segment)) segment = std::to_string(std::stoi(segment));
      at = at != nullptr && at->is(Kind::map) ? at->find(segment) : nullptr;
    }
    path.push_back(segment);
    key = key_below(key, segment);
  }
  return path;
}

bool overlap(const ItemPath& a, const ItemPath& b) {
  const Key* key = &root_key();
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (a[i] == b[i]) {
      key = key_below(key, a[i]);
      continue;
    }
    const Key* const x = key == nullptr ? nullptr : child(*key, a[i]);
    const Key* const y = key == nullptr ? nullptr : child(*key, b[i]);
    if (x == nullptr || y == nullptr) return false;
    return (x->need == Need::alternative && y->need == Need::alternative) || are_one_setting(*x, *y);
  }
  return true;
}

bool is_at_or_below(const ItemPath& path, const ItemPath& above) {
  return path.size() >= above.size() && std::equal(above.begin(), above.end(), path.begin());
}

}  // namespace pmaptrain::spec
