#include "core/spec/compare.h"

#include <algorithm>
#include <array>
#include <memory>

#include "core/base/text.h"
#include "core/spec/changes/older_format.h"
#include "core/spec/print.h"
#include "core/spec/rows/sections.h"
#include "core/spec/types/key.h"
#include "core/spec/yaml/find.h"
#include "core/spec/yaml/node.h"
#include "core/spec/yaml/parse.h"
#include "core/spec/yaml/print.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

class Comparison {
 public:
  Comparison(const Node& before, const Node& after)
      : members_axis(axis_of(after, before)),
        old_members_axis_(axis_of(before, after)),
        tensor_axis_(tensor_axis_of(after, before)),
        old_tensor_axis_(tensor_axis_of(before, after)) {}
  std::vector<ChangedKey> changed;
  const std::string members_axis;  // empty where neither config has an ensemble

  void compare(const std::string& path, const Node* before, const Node* after) {
    if (path == "mesh.axes") return axes(path, before, after);
    if (path == "data.axes") return differ(path, sorted(before), sorted(after));
    const bool same_kind = before != nullptr && after != nullptr && before->is(after->kind);
    if (same_kind && before->is(Kind::map)) {
      maps(path, *before, *after);
    } else if (same_kind && before->is(Kind::sequence) && before->items.size() == after->items.size()) {
      for (std::size_t i = 0; i < after->items.size(); ++i) {
        compare(path_below(path, std::to_string(i)), &before->items[i], &after->items[i]);
      }
    } else {
      differ(path, before != nullptr ? print_value(*before) : "", after != nullptr ? print_value(*after) : "");
    }
  }

 private:
  // The axis of the ensemble. If there is none, the axis of the other config, so that adding the axis alone is no
  // change.
  static std::string axis_of(const Node& config, const Node& other) {
    const Node* axis = get_path(&config, "ensemble.axis");
    if (axis == nullptr) axis = get_path(&other, "ensemble.axis");
    return axis != nullptr ? axis->text : "";
  }
  // The same of parallelism.tensor.
  static std::string tensor_axis_of(const Node& config, const Node& other) {
    const Node* axis = get_path(&config, "parallelism.tensor.axis");
    if (axis == nullptr) axis = get_path(&other, "parallelism.tensor.axis");
    return axis != nullptr ? axis->text : "";
  }

  void differ(const std::string& path, const std::string& before, const std::string& after) {
    if (before != after) changed.push_back({path, before, after, {}, {}});
  }

  // Axes are compared as a whole because their order matters, but the axes of the members and of parallelism.tensor by
  // themselves: each is another key. The file of a run may have been edited and have no axes here.
  void axes(const std::string& path, const Node* before, const Node* after) {
    if (!are_axes(before) || !are_axes(after)) {
      return differ(path, before != nullptr ? print_value(*before) : "", after != nullptr ? print_value(*after) : "");
    }
    const Axes old = split_axes(*before, old_members_axis_, old_tensor_axis_);
    const Axes now = split_axes(*after, members_axis, tensor_axis_);
    differ(path_below(path, members_axis), old.members, now.members);
    if (old.tensor != now.tensor) {
      differ(path_below(path, tensor_axis_), old.tensor, now.tensor);
      changed.back().is_tensor_axis = true;
    }
    differ(path, old.others, now.others);
  }
  static bool is_axis(const Node& axis) {
    return axis.is(Kind::map) && axis.items.size() == 1 && axis.items.front().is(Kind::scalar);
  }
  static bool are_axes(const Node* axes) {
    if (axes == nullptr) return false;
    return axes->is(Kind::sequence) ? std::all_of(axes->items.begin(), axes->items.end(), is_axis) : is_axis(*axes);
  }
  // The order of these names says nothing.
  static std::string sorted(const Node* names) {
    std::vector<std::string> texts;
    if (names != nullptr) {
      for (const Node& name : names->items) texts.push_back(print_value(name));
    }
    std::sort(texts.begin(), texts.end());
    return "[" + join(texts, ", ") + "]";
  }
  struct Axes {
    std::string members, tensor, others;
  };
  static Axes split_axes(const Node& axes, const std::string& members_axis, const std::string& tensor_axis) {
    Axes found;
    std::vector<std::string> others;
    const auto add = [&](const Node& axis) {
      const std::string& name = axis.keys.front().text;
      (name == members_axis  ? found.members
       : name == tensor_axis ? found.tensor
                             : others.emplace_back(name + "=")) += axis.items.front().text;
    };
    if (axes.is(Kind::map)) {
      add(axes);
    } else {
      std::for_each(axes.items.begin(), axes.items.end(), add);
    }
    // Where there is another axis, one of one device may be left out.
    if (!tensor_axis.empty()) std::erase_if(others, [](const std::string& axis) { return axis.ends_with("=1"); });
    found.others = join(others, " ");
    return found;
  }

  void maps(const std::string& path, const Node& before, const Node& after) {
    for (std::size_t i = 0; i < after.keys.size(); ++i) {
      const std::string& name = after.keys[i].text;
      compare(path_below(path, name), before.find(name), &after.items[i]);
    }
    for (std::size_t i = 0; i < before.keys.size(); ++i) {
      const std::string& name = before.keys[i].text;
      const bool record = path.empty() && name.starts_with("x-");
      if (after.find(name) == nullptr && !record) compare(path_below(path, name), &before.items[i], nullptr);
    }
  }

  const std::string old_members_axis_, tensor_axis_, old_tensor_axis_;
};

// An item by its index, or the size of an axis by its name; null if there is none.
const Node* item_of(const Node& list, std::string_view name) {
  for (const Node& item : list.items) {
    if (const Node* const size = item.is(Kind::map) ? item.find(name) : nullptr) return size;
  }
  const auto index = parse_integer(std::string(name));
  const bool there = index.ok() && index.value >= 0 && index.value < std::ssize(list.items);
  return there ? &list.items[static_cast<std::size_t>(index.value)] : nullptr;
}

// The node at a dotted path, or the one above it that there is.
const Node& nearest_node(const Node& root, std::string_view path) {
  const Node* at = &root;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    const Node* next = nullptr;
    if (at->is(Kind::map)) next = at->find(name);
    if (at->is(Kind::sequence)) next = item_of(*at, name);
    if (next == nullptr) break;
    at = next;
  }
  return *at;
}

// The axis, other than that of the members, that an option has set; if there is none, all axes.
const Node& changed_axis(const Node& config, const std::string& members_axis) {
  const Node& axes = nearest_node(config, "mesh.axes");
  for (const Node& axis : axes.items) {
    if (axis.keys.front().text != members_axis && overridden(axis) != nullptr) return axis;
  }
  return axes;
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
  Node old_tree = parse(before, file);
  complete_older_config(old_tree);
  const Node new_tree = parse(loaded.resolved, "config");
  Comparison comparison(old_tree, new_tree);
  comparison.compare("", &old_tree, &new_tree);
  for (ChangedKey& key : comparison.changed) {
    const Node& node = key.path == "mesh.axes" ? changed_axis(*loaded.tree, comparison.members_axis)
                                               : nearest_node(*loaded.tree, key.path);
    const bool removed = key.after.empty();  // then an option in the map above is not about it
    const Node* const option = removed ? nullptr : overridden(node);
    key.kind = kind_of(option != nullptr ? *option : node);
    key.place = removed ? place_of(node) : error_place(node);
    key.is_default = node.fallback;
  }
  // A key of which the pmaptrain that wrote the config did not know: what it lacks means the default.
  std::erase_if(comparison.changed, [](const ChangedKey& key) { return key.before.empty() && key.is_default; });
  return std::move(comparison.changed);
}

std::vector<ChangedKey> changed_keys(const std::string& before, const std::string& after) {
  const Node old_tree = parse(before, "config"), new_tree = parse(after, "config");
  Comparison comparison(old_tree, new_tree);
  comparison.compare("", &old_tree, &new_tree);
  return std::move(comparison.changed);
}

bool is_at_or_below(std::string_view path, std::string_view key) {
  return path.starts_with(key) && (path.size() == key.size() || path[key.size()] == '.');
}

bool may_differ_on_resume(std::string_view path) {
  constexpr std::array<std::string_view, 16> free_keys = {"name",
                                                          "parallelism",
                                                          "mesh.workers",
                                                          "mesh.backend",
                                                          "mesh.gpu_memory",
                                                          "mesh.timeout",
                                                          "train.duration",
                                                          "train.log_every",
                                                          "train.eval_every",
                                                          "train.verify_replicas",
                                                          "train.checkpoint",
                                                          "train.early_stopping",
                                                          "train.on_nonfinite",
                                                          "train.loss_spike",
                                                          "train.tensorboard",
                                                          "train.max_time"};
  return std::any_of(free_keys.begin(), free_keys.end(), [&](auto free) { return is_at_or_below(path, free); });
}

}  // namespace pmaptrain::spec
