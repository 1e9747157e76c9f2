// Families of kinds that declare their keys themselves (core/declare/kind.h).
#include <utility>
#include <variant>

#include "core/spec/rows/row.h"

namespace pmaptrain::spec {

void add_kind(std::string_view path, const Key& kind, const std::function<void(const declare::Visit&)>& make,
              std::vector<Key>& out) {
  const auto add = [&out](std::string_view above, Key key) {
    key.path = path_below(above, key.path);
    out.push_back(std::move(key));
  };
  add(path, with_type(kind));
  const std::string own = out.back().path;
  make([&](const Key& key, declare::Member member) {
    std::visit([&](const auto* initial) { add(own, completed(key, *initial)); }, member);
  });
}

void look_for_kind(const Node& map, const Key& kind, Chosen& found) {
  if (!map.is(Node::Kind::map)) return;
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    if (map.keys[i].text == kind.path && map.items[i].valid()) found = {&map.keys[i], &map.items[i]};
  }
}

declare::Visit stored_from(const Node& options) {
  return [&options](const Key& key, declare::Member member) {
    const Node* const value = get(&options, key.path);
    if (value == nullptr) return;
    std::visit([&]<class T>(T* out) { Takes<T>::store(*value, *out); }, member);
  };
}

}  // namespace pmaptrain::spec
