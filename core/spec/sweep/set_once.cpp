#include "core/spec/sweep/set_once.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/spec/changes/loaded.h"
#include "core/spec/changes/overlap.h"
#include "core/spec/changes/override.h"
#include "core/spec/keys.h"
#include "core/spec/print.h"
#include "core/spec/sweep/joint_choice.h"
#include "core/spec/yaml/report.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

// A key that each trial, or a trial with one of the values of a choice, has a value for.
struct SetKey {
  enum class By { set, parameter, replicates };
  By by = By::set;
  std::size_t parameter = 0;  // its number
  std::size_t value = 0;      // of a choice under a free name: the number of the map
  Node key;
  ItemPath path;
  const Node* given = nullptr;  // of `set`
};

class Keys {
 public:
  // Names of layers are looked up in the base as 'set' makes it.
  Keys(const SweepFile& file, const Node& base) : config_(base) {
    std::vector<Diagnostic> errors;  // told when the configs of trials are made
    std::vector<std::string> notes;
    apply({}, file.set, config_, errors, notes);
    for (const Assignment& one : file.set) {
      add(SetKey::By::set, 0, 0, whole_key(one.segments));
      keys_.back().given = &one.value;
    }
    for (std::size_t i = 0; i < file.keys.size(); ++i) {
      if (!file.free[i]) {
        add(SetKey::By::parameter, i, 0, file.keys[i]);
        continue;
      }
      for (std::size_t k = 0; k < file.values[i].size(); ++k) {
        for (const Node& key : file.values[i][k].keys) add(SetKey::By::parameter, i, k, key);
      }
    }
    for (const Assignment& one : file.replicates.front()) add(SetKey::By::replicates, 0, 0, whole_key(one.segments));
  }

  const std::vector<SetKey>& all() const { return keys_; }

  // The value that the base has at a key: "16"; empty without one.
  std::string base_value(const ItemPath& path) const {
    const Node* at = &config_;
    for (const std::string& segment : path) {
      if (at->is(Node::Kind::sequence)) {
        const auto index = parse_integer(segment);
        const bool is_item = index.ok() && index.value >= 0 && index.value < std::ssize(at->items);
        at = is_item ? &at->items[static_cast<std::size_t>(index.value)] : nullptr;
      } else {
        at = at->is(Node::Kind::map) ? at->find(segment) : nullptr;
      }
      if (at == nullptr) return "";
    }
    return print_value(*at);
  }

 private:
  static Node whole_key(const std::vector<Node>& segments) {
    std::string path;
    for (const Node& segment : segments) path = path_below(path, segment.text);
    return scalar_at(segments.front(), path);
  }

  void add(SetKey::By by, std::size_t parameter, std::size_t value, const Node& key) {
    keys_.push_back({by, parameter, value, key, item_path(config_, segments_of(key)), nullptr});
  }

  Node config_;
  std::vector<SetKey> keys_;
};

// Whether no trial has both.
bool are_apart(const SetKey& a, const SetKey& b) {
  return a.by == SetKey::By::parameter && b.by == a.by && a.parameter == b.parameter && a.value != b.value;
}

// What `set` has above a key makes a base for it: of trials, or of a later key of `set` for which it has no value.
bool is_base(const SetKey& a, const SetKey& b) {
  if (a.by != SetKey::By::set || b.path.size() <= a.path.size() || !is_at_or_below(b.path, a.path)) return false;
  if (b.by != SetKey::By::set) return true;
  const Node* at = a.given;
  for (std::size_t i = a.path.size(); i < b.path.size() && at != nullptr; ++i) {
    at = at->is(Node::Kind::map) ? at->find(b.path[i]) : nullptr;
  }
  return at == nullptr;
}

bool is_option(const Node& node) { return node.source && node.source->option; }

std::string said(const SetKey& a, const SetKey& b) {
  if (a.key.text == b.key.text) return fmt::format("'{}' is set twice for each trial", b.key.text);
  if (a.path == b.path)
    return fmt::format("'{}' and '{}' are one key, set twice for each trial", a.key.text, b.key.text);
  const bool nested = is_at_or_below(a.path, b.path) || is_at_or_below(b.path, a.path);
  return fmt::format("'{}' and '{}' {}: a trial takes each of its values from one key", a.key.text, b.key.text,
                     nested ? "overlap" : "exclude each other");
}

// What a parameter whose values are alternatives is written as, so that keys beside them stay; empty for others.
std::string joint_help(const SweepFile& file, std::size_t parameter) {
  if (file.free[parameter] || file.spec.parameters[parameter].space != Space::choice) return "";
  const Key* const key = find_key(file.keys[parameter].text);
  if (key == nullptr) return "";
  const std::string joint = joint_choice(joint_name(*key), *key, file.values[parameter]);
  return joint.empty() ? "" : "maps of keys leave the other keys as they are: " + joint;
}

// A value in place of a whole choice has none of the keys beside its alternatives: optimizer: adam has no learning
// rate.
void check_whole_choices(const SweepFile& file, const Reporter& reporter) {
  for (std::size_t i = 0; i < file.keys.size(); ++i) {
    const std::string help = joint_help(file, i);
    if (help.empty()) continue;
    const Key& key = *find_key(file.keys[i].text);
    for (const Node& value : file.values[i]) {
      const auto siblings = children(key);
      const auto lost = std::find_if(siblings.begin(), siblings.end(), [&](const Key* one) {
        return one->need == Need::required && value.find(one->name()) == nullptr;
      });
      if (lost == siblings.end()) continue;
      reporter.report(value,
                      fmt::format("'{}' takes the place of all of {}, so {} is gone", print_value(value), key.path,
                                  (*lost)->name()),
                      help);
      break;
    }
  }
}

// A key that some maps of a choice set, and others leave as the base has it.
void note_unset_keys(SweepFile& file, const Keys& keys) {
  std::set<std::pair<std::size_t, ItemPath>> told;
  for (const SetKey& one : keys.all()) {
    if (one.by != SetKey::By::parameter || !file.free[one.parameter]) continue;
    for (std::size_t k = 0; k < file.values[one.parameter].size(); ++k) {
      const bool is_set = std::any_of(keys.all().begin(), keys.all().end(), [&](const SetKey& other) {
        return other.by == one.by && other.parameter == one.parameter && other.value == k &&
               overlap(other.path, one.path);
      });
      if (is_set || !told.insert({one.parameter, one.path}).second) continue;
      const std::string value = keys.base_value(one.path);
      file.spec.notes.push_back(fmt::format("{}: {} does not set {}, which keeps the base's value{}",
                                            file.keys[one.parameter].text, print_value(file.values[one.parameter][k]),
                                            one.key.text, value.empty() ? "" : ", " + value));
    }
  }
}

}  // namespace

void check_set_once(SweepFile& file, const Node& base, std::vector<Diagnostic>& errors) {
  const Reporter reporter(errors);
  const Keys keys(file, base);
  const ItemPath best = {"train", "checkpoint", "best"};
  std::vector<std::pair<std::string, std::string>> told;
  for (auto b = keys.all().begin(); b != keys.all().end(); ++b) {
    if (b->path.front() == "name" && b->by != SetKey::By::set) {
      reporter.report(b->key, "a sweep names its trials itself", "remove it");
      continue;
    }
    if (is_at_or_below(b->path, best) && b->by != SetKey::By::set) {
      reporter.report(b->key, fmt::format("'{}' is what the sweep itself selects by", b->key.text),
                      "remove it: the sweep's metric and mode are those of checkpoint.best");
      continue;
    }
    const auto a = std::find_if(keys.all().begin(), b, [&](const SetKey& one) {
      return !are_apart(one, *b) && !is_base(one, *b) && overlap(one.path, b->path);
    });
    if (a == b) continue;
    if (b->by == SetKey::By::set && is_option(b->key)) {
      file.spec.notes.push_back(said_at(b->key) + " replaces what " + said_at(a->key) + " has set");
      continue;
    }
    const std::pair pair(a->key.text, b->key.text);
    if (std::find(told.begin(), told.end(), pair) != told.end()) continue;  // in other maps of the choice, too
    told.push_back(pair);
    std::string help;
    for (const SetKey* const one : {&*a, &*b}) {
      if (one->by == SetKey::By::parameter && help.empty()) help = joint_help(file, one->parameter);
    }
    if (help.empty()) {
      help =
          "keep one of the two; a choice may list whole values, or maps of keys that are set together: size: {choice: "
          "[{data.batch_size: 64, optimizer.learning_rate: 0.1}]}";
    }
    reporter.report(b->key, said(*a, *b), help, {fmt::format("'{}' is at {}", a->key.text, said_at(a->key))});
  }
  if (told.empty()) check_whole_choices(file, reporter);
  note_unset_keys(file, keys);
}

}  // namespace pmaptrain::spec
