#include "core/spec/compare.h"

#include <algorithm>
#include <memory>

#include "core/spec/node.h"
#include "core/spec/parse.h"
#include "core/spec/print.h"
#include "core/spec/scalar.h"
#include "core/spec/sections.h"
#include "core/spec/values.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

class Comparison {
 public:
  std::vector<ChangedKey> changed;

  void compare(const std::string& path, const Node* before, const Node* after) {
    const bool same_kind = before != nullptr && after != nullptr && before->is(after->kind);
    if (same_kind && before->is(Kind::map)) {
      maps(path, *before, *after);
    } else if (same_kind && before->is(Kind::sequence) && before->items.size() == after->items.size()) {
      for (std::size_t i = 0; i < after->items.size(); ++i) {
        compare(path_below(path, std::to_string(i)), &before->items[i], &after->items[i]);
      }
    } else {
      const std::string old_text = before != nullptr ? print_value(*before) : "";
      const std::string new_text = after != nullptr ? print_value(*after) : "";
      if (old_text != new_text) changed.push_back({path, old_text, new_text, {}, {}, {}});
    }
  }

 private:
  void maps(const std::string& path, const Node& before, const Node& after) {
    for (std::size_t i = 0; i < after.keys.size(); ++i) {
      const std::string& name = after.keys[i].text;
      compare(path_below(path, name), before.find(name), &after.items[i]);
    }
    for (std::size_t i = 0; i < before.keys.size(); ++i) {
      const std::string& name = before.keys[i].text;
      if (after.find(name) == nullptr) compare(path_below(path, name), &before.items[i], nullptr);
    }
  }
};

// The node at a dotted path, or the one above it that there is.
const Node& nearest_node(const Node& root, std::string_view path) {
  const Node* at = &root;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    const Node* next = nullptr;
    if (at->is(Kind::map)) next = at->find(name);
    if (at->is(Kind::sequence)) {
      const auto index = static_cast<std::size_t>(parse_integer(std::string(name)).value);
      if (index < at->items.size()) next = &at->items[index];
    }
    if (next == nullptr) break;
    at = next;
  }
  return *at;
}

Node parse(const std::string& text, const std::string& file) {
  auto source = std::make_shared<Text>();
  source->file = file;
  source->lines = split_lines(text);
  std::vector<Diagnostic> errors;
  Node tree = parse_yaml(text, source, 0, errors);
  if (!errors.empty()) throw Error(ExitStatus::usage, std::move(errors));
  return tree;
}

}  // namespace

std::vector<ChangedKey> changed_keys(const std::string& before, const std::string& file, const Loaded& loaded) {
  const Node old_tree = parse(before, file), new_tree = parse(loaded.resolved, "config");
  Comparison comparison;
  comparison.compare("", &old_tree, &new_tree);
  for (ChangedKey& key : comparison.changed) {
    const Node& node = nearest_node(*loaded.tree, key.path);
    const Node* const option = overridden(node);
    key.kind = kind_of(option != nullptr ? *option : node);
    key.place = error_place(node);
    key.is_default = node.fallback;
  }
  return std::move(comparison.changed);
}

}  // namespace pmaptrain::spec
