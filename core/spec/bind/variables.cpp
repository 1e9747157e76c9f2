#include "core/spec/bind/variables.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/spec/rows/sections.h"
#include "core/spec/types/key.h"
#include "core/spec/yaml/find.h"
#include "core/spec/yaml/report.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

class Search {
 public:
  std::vector<Variable> found;

  void add_children(const Key& key, const Node& map, const std::string& above) {
    for (const Key* other : children(key)) {
      const std::string path = path_below(above, other->name());
      if (const Node* value = get(&map, other->name())) add(*other, *value, path);
    }
  }

 private:
  void add(const Key& key, const Node& value, const std::string& path) {
    if (key.varies && value.is(Kind::scalar)) {
      found.push_back({path, &key});
    } else if (key.type == Type::scales) {
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        found.push_back({path_below(path, std::to_string(i) + ".1"), &key});
      }
    } else if (key.type == Type::entries) {
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        const std::string name = entry_name(value, i);
        add(*child(key, name), value.items[i], path_below(path, name));
      }
    } else if (value.is(Kind::map)) {
      add_children(key, value, path);
    } else if (key.type == Type::choices || key.type == Type::maps) {
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        const Node& item = value.items[i];
        // A schedule of a list may be a number.
        if (item.is(Kind::map)) add_children(key, item, path_below(path, std::to_string(i)));
      }
    }
  }
};

// The item of a list with this index or name; null if there is none.
const Node* item_of(const Node& list, std::string_view segment, std::size_t& index) {
  for (index = 0; index < list.items.size(); ++index) {
    const Node* const name = get(&list.items[index], "name");
    if (std::to_string(index) == segment || (name != nullptr && name->text == segment)) return &list.items[index];
  }
  return nullptr;
}

}  // namespace

std::vector<Variable> variables_of(const Node& config) {
  Search search;
  search.add_children(root_key(), config, "");
  return std::move(search.found);
}

const Variable* find_variable(const std::vector<Variable>& variables, std::string_view path) {
  const auto at =
      std::find_if(variables.begin(), variables.end(), [&](const Variable& one) { return one.path == path; });
  return at == variables.end() ? nullptr : &*at;
}

Node check_variable(const Variable& variable, const Node& value, const Reporter& reporter) {
  Key each = *variable.key;
  // A schedule has other equations; of pairs only the scale varies.
  if (each.or_number || each.type == Type::scales) each.type = Type::number;
  if (variable.key->type == Type::scales) {
    each.path = "scale";
    each.example = "scale: 0.1";
  }
  return each.type->check(each, value, reporter);
}

bool is_structural(const Variable& variable, const Node& value) {
  if (!value.valid() || !variable.key->structural) return false;
  const double number = parse_number(value.text).value;
  return !(number < variable.key->structural->value) && !(number > variable.key->structural->value);
}

Resolved resolve(const Node& config, std::string_view path) {
  Resolved resolved{"", true};
  const Node* at = &config;
  while (!path.empty()) {
    const std::string_view segment = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), segment.size() + 1));
    std::size_t index = 0;
    const bool list = at != nullptr && at->is(Kind::sequence);
    if (at != nullptr) at = list ? item_of(*at, segment, index) : at->is(Kind::map) ? at->find(segment) : nullptr;
    resolved.path = path_below(resolved.path, list && at != nullptr ? std::to_string(index) : std::string(segment));
  }
  resolved.exists = at != nullptr;
  return resolved;
}

Node& node_at(Node& config, std::string_view path) {
  Node* at = &config;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    if (at->is(Kind::sequence)) {
      at = &at->items[static_cast<std::size_t>(std::stoll(std::string(name)))];
    } else if (Node* next = at->find(name)) {
      at = next;
    } else {
      at = &at->add(scalar_at(*at, std::string(name)), empty_at(*at, Kind::blank));
    }
  }
  return *at;
}

}  // namespace pmaptrain::spec
