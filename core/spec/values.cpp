#include "core/spec/values.h"

#include "core/spec/keys.h"
#include "core/spec/scalar.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

template <class T>
void store_items(const Node* node, std::vector<T>& out) {
  if (node == nullptr) return;
  out.clear();
  for (const Node& item : node->items) store(&item, out.emplace_back());
}

bool in_option(const Node& node) { return node.source && node.source->option; }

}  // namespace

const Node* get(const Node* map, std::string_view key) {
  if (map == nullptr || !map->is(Kind::map)) return nullptr;
  const Node* found = map->find(key);
  return found != nullptr && found->valid() ? found : nullptr;
}

void store(const Node* node, std::int64_t& out) {
  if (node != nullptr) out = parse_integer(node->text).value;
}
void store(const Node* node, double& out) {
  if (node != nullptr) out = parse_number(node->text).value;
}
void store(const Node* node, bool& out) {
  if (node != nullptr) out = node->text == "true";
}
void store(const Node* node, std::string& out) {
  if (node != nullptr) out = node->text;
}
void store(const Node* node, std::vector<std::int64_t>& out) { store_items(node, out); }
void store(const Node* node, std::vector<double>& out) { store_items(node, out); }
void store(const Node* node, std::vector<std::vector<double>>& out) { store_items(node, out); }

Chosen chosen(const Node* node, std::string_view path) {
  if (node == nullptr || !node->is(Kind::map)) return {};
  const Key& key = *find_key(path);
  for (std::size_t i = 0; i < node->keys.size(); ++i) {
    const Key* option = child(key, node->keys[i].text);
    if (option != nullptr && option->need == Need::alternative && node->items[i].valid()) {
      return {&node->keys[i], &node->items[i]};
    }
  }
  return {};
}

const Node* overridden(const Node& node) {
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    // A default stands where the map above it does: nobody wrote it.
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
