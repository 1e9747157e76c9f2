#include "core/spec/changes/override.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "core/base/text.h"
#include "core/spec/changes/assignment.h"
#include "core/spec/changes/overlap.h"
#include "core/spec/keys.h"
#include "core/spec/keys/check.h"
#include "core/spec/rows/sections.h"
#include "core/spec/types/duration.h"
#include "core/spec/types/key.h"
#include "core/spec/yaml/find.h"
#include "core/spec/yaml/print.h"
#include "core/spec/yaml/report.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

class Walker {
 public:
  Walker(Node& root, std::vector<Diagnostic>& errors, std::vector<std::string>& notes)
      : root_(root), reporter_(errors), notes_(notes) {}

  void set(const Assignment& assignment) {
    setting_ = &assignment.segments.front();
    Node* at = &root_;
    const Key* key = &root_key();
    if (!at->is(Kind::map)) return;  // reported later
    path_.clear();
    for (std::size_t i = 0; i < assignment.segments.size(); ++i) {
      if (key != nullptr && key->type == Type::varied && at->is(Kind::map)) {
        return vary(*at, std::span(assignment.segments).subspan(i), assignment.value);
      }
      const bool last = i + 1 == assignment.segments.size();
      if (last && assignment.value.is(Kind::null)) {
        restore(*at, key, assignment.segments[i]);
        return;
      }
      Node* next = step(*at, key, assignment.segments[i]);
      if (next == nullptr) return;
      if (last) {
        replace_choice(*next, key, assignment.value);
        note_lost(*next, key, assignment);
        replace(*next, assignment.value);
        return;
      }
      path_ += assignment.segments[i].text + ".";
      open(*next, key, assignment.segments[i]);
      if (!next->is(Kind::map) && !next->is(Kind::sequence)) {
        reporter_.report(assignment.segments[i + 1], "'" + assignment.segments[i].text + "' has no keys below it",
                         key != nullptr ? "it takes " + takes(*key) : "");
        if (next->is(Kind::blank)) next->kind = Kind::invalid;  // not written by the user
        return;
      }
      at = next;
    }
  }

  // --devices sets the size of the only axis.
  void devices(const Node& value) {
    const Node* mesh = root_.is(Kind::map) ? root_.find("mesh") : nullptr;
    const Node* axes = mesh != nullptr && mesh->is(Kind::map) ? mesh->find("axes") : nullptr;
    // An invalid mesh is reported later.
    if (mesh != nullptr && (mesh->is(Kind::scalar) || mesh->is(Kind::sequence))) return;
    if (axes != nullptr && axes->is(Kind::scalar)) return;
    std::vector<std::string> names;
    if (axes != nullptr && axes->is(Kind::map)) {
      for (const Node& key : axes->keys) names.push_back(key.text);
    } else if (axes != nullptr && axes->is(Kind::sequence)) {
      for (const Node& item : axes->items) {
        for (const Node& key : item.keys) names.push_back(key.text);
      }
      if (names.empty()) return;
    }
    if (names.size() > 1) {
      std::vector<std::string> settings;
      settings.reserve(names.size());
      for (const std::string& name : names) settings.push_back("--set mesh.axes." + name + "=N");
      reporter_.report(value,
                       "--devices sets the size of a single axis; this mesh has " + std::to_string(names.size()) +
                           ": " + join(names, ", "),
                       "set them one by one: " + join(settings, " "));
      return;
    }
    Assignment assignment;
    for (const std::string& segment :
         {std::string("mesh"), std::string("axes"), names.empty() ? std::string("devices") : names.front()}) {
      assignment.segments.push_back(scalar_at(value, segment));
    }
    assignment.value = value;
    set(assignment);
  }

 private:
  // Below ensemble.vary a key is in parts or with its dots, as the file has it.
  void vary(Node& map, std::span<const Node> segments, const Node& value) {
    std::string path;
    for (const Node& segment : segments) path = path_below(path, segment.text);
    Node key = scalar_at(segments.front(), path);
    key.length = segments.back().column + segments.back().length - key.column;
    const bool removes = value.is(Kind::null);
    if (removes && erase_varied(map, path)) return;
    const auto [found, index] = find_varied(map, path);
    if (found != nullptr && !index.empty()) {
      const Key* none = nullptr;
      const Node segment = scalar_at(segments.back(), index);
      if (removes) return restore(*found, none, segment);
      if (Node* const one = item(*found, none, segment)) replace(*one, value);
    } else if (removes) {
      std::vector<std::string> names;
      add_varied(map, "", names);
      reporter_.report(key, "unknown key '" + path + "' in vary",
                       names.empty() ? "vary has no keys" : suggest(path, names, "keys"));
    } else if (found != nullptr) {
      replace(*found, value);
    } else {
      map.add(std::move(key), value);
    }
  }

  static bool is_below(std::string_view path, std::string_view key) {
    return path.size() > key.size() && path.starts_with(key) && path[key.size()] == '.';
  }

  // The value at `path`, or a list and the index of an item in it; null if there is neither.
  static std::pair<Node*, std::string> find_varied(Node& map, std::string_view path) {
    for (std::size_t i = 0; i < map.keys.size(); ++i) {
      const std::string& name = map.keys[i].text;
      Node& value = map.items[i];
      if (path == name) return {&value, ""};
      if (!is_below(path, name)) continue;
      const std::string_view rest = path.substr(name.size() + 1);
      if (value.is(Kind::sequence) && is_index(rest)) return {&value, std::string(rest)};
      auto found = value.is(Kind::map) ? find_varied(value, rest) : std::pair<Node*, std::string>();
      if (found.first != nullptr) return found;
    }
    return {};
  }

  // Removes the key and the keys below it; false if there are none.
  bool erase_varied(Node& map, std::string_view path) {
    bool erased = false;
    for (std::size_t i = map.keys.size(); i-- > 0;) {
      const std::string name = map.keys[i].text;
      if (name == path || is_below(name, path)) {
        note_overruled(map.items[i]);
        map.erase(name);
        erased = true;
      } else if (is_below(path, name) && map.items[i].is(Kind::map)) {
        erased = erase_varied(map.items[i], path.substr(name.size() + 1)) || erased;
      }
    }
    return erased;
  }

  static void add_varied(const Node& map, const std::string& above, std::vector<std::string>& names) {
    for (std::size_t i = 0; i < map.keys.size(); ++i) {
      const std::string path = path_below(above, map.keys[i].text);
      if (map.items[i].is(Kind::map)) {
        add_varied(map.items[i], path, names);
      } else {
        names.push_back(path);
      }
    }
  }

  void replace(Node& node, const Node& value) {
    if (print_value(node) != print_value(value)) note_overruled(node);
    node = value;
  }

  // Notes which options before this one have given values in `node` that are replaced or removed.
  void note_overruled(const Node& node) {
    if (!node.items.empty()) {
      for (const Node& item : node.items) note_overruled(item);
      return;
    }
    if (!node.source || !node.source->option || node.source == setting_->source) return;
    const std::string note = said_at(*setting_) + " replaces what " + said_at(node) + " has set";
    if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
  }

  // Returns the node of `segment` below `at`, adding it if it is missing. Advances `key` to the key of that node (null
  // if the table has none). Returns null after reporting an error.
  Node* step(Node& at, const Key*& key, const Node& segment) {
    if (at.is(Kind::sequence)) return item(at, key, segment);
    const Key* next = key != nullptr ? child(*key, segment.text) : nullptr;
    if (next != nullptr) replace_others(at, *key, *next);
    Node* found = at.find(segment.text);
    if (found == nullptr) {
      // A key that the file does not have, or an option of a bare 'adam'.
      found = &at.add(segment, empty_at(segment, Kind::blank));
    }
    key = next;
    return found;
  }

  Node* item(Node& at, const Key*& key, const Node& segment) {
    if (is_index(segment.text)) {
      const auto position = static_cast<std::size_t>(std::stoi(segment.text));
      if (position < at.items.size()) {
        if (key != nullptr && key->type == Type::entries) {
          key = child(*key, segment.text);
          return &at.items[position];
        }
        // The keys of an item of a list of choices are below the key of the list.
        if (key != nullptr && key->type != Type::choices && key->type != Type::maps) key = nullptr;
        return &at.items[position];
      }
      reporter_.report(
          segment,
          "there is no item " + segment.text + "; the list has " + std::to_string(at.items.size()) + ", counted from 0",
          at.items.empty() ? "set the whole list" : "the last is " + std::to_string(at.items.size() - 1));
      return nullptr;
    }
    if (key != nullptr && key->type == Type::choices) {
      std::vector<std::string> names;
      std::map<std::string, int> counts;
      for (Node& layer : at.items) {
        names.push_back(item_name(layer, *key, counts));
        if (names.back() == segment.text) return &layer;
      }
      reporter_.report(segment, "there is no " + std::string(key->item) + " '" + segment.text + "'",
                       suggest(segment.text, names, plural(*key)));
      return nullptr;
    }
    if (key != nullptr && key->type == Type::axes) {
      std::vector<std::string> names;
      for (Node& axis : at.items) {
        for (std::size_t i = 0; i < axis.keys.size(); ++i) {
          names.push_back(axis.keys[i].text);
          if (names.back() != segment.text) continue;
          key = nullptr;
          return &axis.items[i];
        }
      }
      reporter_.report(segment, "the mesh has no axis '" + segment.text + "'", suggest(segment.text, names, "axes"));
      return nullptr;
    }
    reporter_.report(segment, "items of a list are addressed by their index, not '" + segment.text + "'",
                     "count from 0");
    return nullptr;
  }

  // Setting one alternative of a choice removes the others.
  void replace_others(Node& at, const Key& parent, const Key& next) {
    for (const Key* other : children(parent)) {
      const bool excludes =
          (next.need == Need::alternative && other->need == Need::alternative) || are_one_setting(next, *other);
      const Node* const old = other != &next && excludes ? at.find(other->name()) : nullptr;
      if (old == nullptr) continue;
      note_overruled(*old);
      at.erase(other->name());
      // A sweep file that lists alternatives says so itself.
      if (!is_option()) continue;
      notes_.push_back(path_ + std::string(next.name()) + " replaces " + path_ + std::string(other->name()));
    }
  }

  bool is_option() const { return setting_->source && setting_->source->option; }

  // A number in place of an alternative. The note has no number: a sweep says it once for all of its trials.
  void replace_choice(const Node& node, const Key* key, const Node& value) {
    if (key == nullptr || !key->or_number || !node.is(Kind::map) || !value.is(Kind::scalar)) return;
    const std::string path = path_ + std::string(key->name());
    for (const Node& name : node.keys) {
      const Key* const schedule = child(*key, name.text);
      std::string note = path + ": a number replaces the schedule " + name.text;
      for (const char* const size : {"peak_value", "init_value"}) {
        if (schedule == nullptr || child(*schedule, size) == nullptr) continue;
        note += fmt::format("; {}.{}.{} keeps the schedule", path, name.text, size);
        break;
      }
      notes_.push_back(std::move(note));
    }
  }

  // A value in place of a whole map, which then lacks keys that stood there: optimizer=sgd, without its learning rate.
  // Another alternative of a choice is no such key.
  void note_lost(const Node& node, const Key* key, const Assignment& assignment) {
    const Node& value = assignment.value;
    const bool is_choice = key != nullptr && key->type == Type::choice;
    if (key == nullptr || !node.is(Kind::map) || (key->type != Type::map && !is_choice)) return;
    std::vector<std::string> lost;
    for (const Node& name : node.keys) {
      const Key* const known = child(*key, name.text);
      const bool is_alternative = known != nullptr && known->need == Need::alternative;
      if (known != nullptr && !is_alternative && value.find(name.text) == nullptr) lost.push_back(name.text);
    }
    if (lost.empty()) return;
    const std::string path = path_ + std::string(key->name());
    const std::string set = is_option() ? "--set " : "";
    std::string note = set + path + " replaces all of " + path + ", so " + join(lost, ", ") +
                       (lost.size() == 1 ? " is gone" : " are gone");
    const std::string& kind = value.is(Kind::scalar) || value.keys.empty() ? value.text : value.keys.front().text;
    const Key* const chosen = child(*key, kind);
    if (chosen != nullptr && chosen->need == Need::alternative) {
      note += "; " + set + path + "." + kind + (is_option() ? "={}" : ": {}") + " changes the kind alone";
    }
    notes_.push_back(std::move(note));
  }

  // Converts `node` (a bare choice, a shorthand or a blank) to a map, so that further segments can be added.
  void open(Node& node, const Key* key, const Node& segment) {
    const bool leaf = key != nullptr && children(*key).empty() && key->need != Need::alternative &&
                      key->type != Type::axes && key->type != Type::tensors && key->type != Type::varied;
    if (!leaf && (node.is(Kind::blank) || node.is(Kind::null))) {
      node = empty_at(segment, Kind::map);
      return;
    }
    if (!node.is(Kind::scalar) || key == nullptr) return;
    if (key->or_number && child(*key, node.text) == nullptr) {
      note_overruled(node);
      notes_.push_back(path_.substr(0, path_.size() - 1) + ": a schedule replaces the number " + node.text);
      node = empty_at(segment, Kind::map);
      return;
    }
    if (key->type == Type::choice || key->type == Type::choices) {
      const Key* chosen = child(*key, node.text);
      if (chosen == nullptr || chosen->need != Need::alternative) return;
      Node name = node;
      node = empty_at(name, Kind::map);
      node.add(name, empty_at(name, Kind::map));
      return;
    }
    if (key->type != Type::map) return;
    for (const Key* other : children(*key)) {
      if (!other->shorthand) continue;
      Node value = node;
      node = empty_at(value, Kind::map);
      node.add(scalar_at(value, std::string(other->name())), value);
      return;
    }
  }

  // =null
  void restore(Node& at, const Key* key, const Node& segment) {
    if (key != nullptr && key->type == Type::axes) {
      reporter_.report(segment, "the size of an axis has no default",
                       "set a size; mesh.axes=null restores the default mesh");
      return;
    }
    if (at.is(Kind::sequence)) {
      reporter_.report(segment, "an item of a list has no default", "set the whole list instead");
      return;
    }
    const bool free = key == nullptr || key->type == Type::tensors;
    const Key* next = key != nullptr ? child(*key, segment.text) : nullptr;
    if (next == nullptr && !free && at.find(segment.text) == nullptr) {
      std::vector<std::string> names;
      for (const Key* other : children(*key)) names.emplace_back(other->name());
      const std::string where = key->path.empty() ? "" : " in " + std::string(key->name());
      reporter_.report(segment, "unknown key '" + segment.text + "'" + where, suggest(segment.text, names, "keys"));
      return;
    }
    if (next != nullptr && next->need == Need::alternative) {
      // The alternative remains chosen; its options get their defaults.
      if (Node* found = at.find(segment.text)) replace(*found, empty_at(segment, Kind::null));
      return;
    }
    if (const Node* const found = at.find(segment.text)) note_overruled(*found);
    at.erase(segment.text);
  }

  Node& root_;
  Reporter reporter_;
  std::vector<std::string>& notes_;
  const Node* setting_ = nullptr;  // the key that is set
  std::string path_;               // the segments of the key so far, each followed by a dot
};

Assignment assign(std::vector<std::string> path, const Node& value) {
  Assignment assignment;
  for (std::string& segment : path) assignment.segments.push_back(scalar_at(value, std::move(segment)));
  assignment.value = value;
  return assignment;
}

}  // namespace

void apply(const Overrides& overrides, std::span<const Assignment> values, Node& root, std::vector<Diagnostic>& errors,
           std::vector<std::string>& notes) {
  Walker walker(root, errors, notes);
  for (const std::string& argument : overrides.set) {
    try {
      if (const auto assignment = parse_assignment(argument, errors)) walker.set(*assignment);
    } catch (const Error& error) {
      // An unreadable value does not affect other arguments.
      errors.insert(errors.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
  }
  if (overrides.devices) walker.devices(option_value("--devices", std::to_string(*overrides.devices)));
  if (overrides.workers) {
    // 0 is --workers auto, which no number of workers is.
    const std::string workers = *overrides.workers == 0 ? "auto" : std::to_string(*overrides.workers);
    walker.set(assign({"mesh", "workers"}, option_value("--workers", workers)));
  }
  if (overrides.seed) walker.set(assign({"seed"}, option_value("--seed", std::to_string(*overrides.seed))));
  if (overrides.name) {
    Node name = option_value("--name", *overrides.name);
    name.quoted = true;
    walker.set(assign({"name"}, name));
  }
  for (const Assignment& value : values) walker.set(value);
}

Interval max_time_of(const Overrides& overrides, std::vector<Diagnostic>& errors) {
  Interval time;
  if (!overrides.max_time) return time;
  const Node value = option_value("--max-time", *overrides.max_time);
  const Node checked = Takes<Interval>::type.check(*find_key("train.max_time"), value, Reporter(errors));
  if (checked.valid()) Takes<Interval>::store(checked, time);
  return time;
}

}  // namespace pmaptrain::spec
