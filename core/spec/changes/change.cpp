#include "core/spec/change.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "core/spec/bind/bind.h"
#include "core/spec/bind/variables.h"
#include "core/spec/changes/assignment.h"
#include "core/spec/changes/loaded.h"
#include "core/spec/changes/overlap.h"
#include "core/spec/compare.h"
#include "core/spec/keys/check.h"
#include "core/spec/print.h"
#include "core/spec/rows/sections.h"
#include "core/spec/types/duration.h"
#include "core/spec/yaml/find.h"
#include "core/spec/yaml/print.h"
#include "core/spec/yaml/report.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

// The source of changes that config.yaml records.
constexpr std::string_view recorded = "x-changes";
constexpr std::string_view another_run = "begin another run (--name), from this one's parameters with model.init.from";

// Why no step of a run can change the number at this path; empty if one can.
std::string_view why_fixed(std::string_view path) {
  const Key* const key = find_key(path);
  return key == nullptr ? std::string_view{} : key->fixed;
}

// The change that one argument requests.
struct Asked {
  std::string path;
  Node key;  // the whole of it
  Node value;
};

std::optional<Asked> parse_change(const ChangeText& given, const Node& config, std::vector<Diagnostic>& errors) {
  std::optional<Assignment> assignment;
  try {
    assignment = parse_assignment(given.text, errors, given.source);
  } catch (const Error& error) {  // a value that is no YAML
    errors.insert(errors.end(), error.diagnostics().begin(), error.diagnostics().end());
  }
  if (!assignment) return std::nullopt;
  const Node &first = assignment->segments.front(), &last = assignment->segments.back();
  std::string path;
  for (const Node& segment : assignment->segments) path = path_below(path, segment.text);
  Node key = scalar_at(first, path);
  key.length = last.column + last.length - first.column;
  return Asked{resolve(config, path).path, std::move(key), std::move(assignment->value)};
}

bool one_overrules(const Asked& a, const Asked& b) {
  return is_at_or_below(a.path, b.path) || is_at_or_below(b.path, a.path);
}

// Two options that change one value: a run records one of them alone.
void refuse_overlaps(const std::vector<Asked>& all, const Reporter& reporter) {
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].key.source->file == recorded) continue;
    const auto before = std::find_if(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i), [&](const Asked& one) {
      return one.key.source->file != recorded && one_overrules(one, all[i]);
    });
    if (before == all.begin() + static_cast<std::ptrdiff_t>(i)) continue;
    reporter.report(all[i].key, "this changes what " + said_at(before->key) + " changes, too", "give one of the two");
  }
}

// A later value of a key counts in place of earlier ones, and a schedule in place of numbers of the one before it.
void drop_overruled(std::vector<Asked>& all) {
  for (std::size_t i = all.size(); i-- > 1;) {
    const std::string path = all[i].path;
    const auto before = all.begin() + static_cast<std::ptrdiff_t>(i);
    const auto kept =
        std::remove_if(all.begin(), before, [&](const Asked& earlier) { return is_at_or_below(earlier.path, path); });
    i -= static_cast<std::size_t>(before - kept);
    all.erase(kept, before);
  }
}

class Changer {
 public:
  Changer(Node& config, const std::optional<Ensemble>& ensemble, std::int64_t step, std::int64_t steps_left,
          std::vector<Diagnostic>& errors)
      : config_(config), ensemble_(ensemble), step_(step), steps_left_(steps_left), reporter_(errors) {}

  // Returns nothing after reporting an error, and for a number that is there already.
  std::optional<Change> make(const Asked& asked, std::vector<std::string>& notes) const {
    const std::vector<Variable> variables = variables_of(config_);
    const Variable* const variable = find_variable(variables, asked.path);
    const bool whole = asked.path == learning_rate_key;
    if (!is_allowed(asked, variable, variables)) return std::nullopt;
    Node& at = node_at(config_, asked.path);
    Node value = whole ? checked_rate(asked) : checked_number(asked, *variable, at);
    if (!value.valid()) return std::nullopt;
    Change change{step_, asked.path, print_value(value), print_value(at)};
    if (value.is(Kind::scalar) && change.value == change.before) {
      notes.push_back(asked.path + " is " + change.value + " already: " + asked.key.source->file + " does nothing");
      return std::nullopt;
    }
    at = std::move(value);
    return change;
  }

 private:
  // The differences between members at this key or below it.
  const Varied* find_varied(std::string_view path) const {
    if (!ensemble_) return nullptr;
    const auto found = std::find_if(ensemble_->vary.begin(), ensemble_->vary.end(),
                                    [&](const Varied& varied) { return is_at_or_below(varied.path, path); });
    return found == ensemble_->vary.end() ? nullptr : &*found;
  }

  bool is_allowed(const Asked& asked, const Variable* variable, const std::vector<Variable>& variables) const {
    const std::string said = "'" + asked.key.text + "' cannot change within a run";
    if (const std::string_view why = why_fixed(asked.path); !why.empty()) {
      reporter_.report(asked.key, said + ": " + std::string(why), std::string(another_run));
      return false;
    }
    if (asked.value.is(Kind::null)) {
      reporter_.report(asked.value, "--change takes the new value of " + asked.path + ", not null",
                       "'=null' restores a default with --set alone");
      return false;
    }
    if (const Varied* const varied = find_varied(asked.path)) {
      reporter_.report(asked.key, said + ": each member has " + varied->path + " of its own (ensemble.vary)",
                       "a change applies to all members: change another key, or begin another run (--name)");
      return false;
    }
    if (asked.path == learning_rate_key || variable != nullptr) return true;
    refuse(asked, said, variables);
    return false;
  }

  void refuse(const Asked& asked, const std::string& said, const std::vector<Variable>& variables) const {
    if (is_at_or_below(asked.path, learning_rate_key)) {
      reporter_.report(asked.key, said + " by itself",
                       "a schedule changes as a whole and counts from the change, for example\n" +
                           std::string("--change '") + learning_rate_key + "={cosine_decay: {init_value: 0.001}}'");
      return;
    }
    if (may_differ_on_resume(asked.path)) {
      reporter_.report(asked.key, "'" + asked.key.text + "' is no number that --change changes",
                       "--resume takes another value of it: write --set " +
                           shell_quoted(asked.key.text + "=" + print_value(asked.value)));
      return;
    }
    std::vector<std::string> paths{learning_rate_key};
    for (const Variable& other : variables) {
      if (why_fixed(other.path).empty() && other.path != learning_rate_key) paths.push_back(other.path);
    }
    std::erase_if(paths, [&](const std::string& path) { return find_varied(path) != nullptr; });
    const std::string all = "keys of this config that can: " + join(paths, ", ");
    if (resolve(config_, asked.path).exists) {
      reporter_.report(asked.key, said, all);
    } else {
      const std::string near = nearest(asked.key.text, paths);
      reporter_.report(asked.key, "this config has no '" + asked.key.text + "' to change",
                       near.empty() ? all : "did you mean '" + near + "'?");
    }
  }

  Node checked_rate(const Asked& asked) const {
    const Key& key = *find_key(learning_rate_key);
    Node rate = check_value(key, scalar_at(asked.key, std::string(key.name())), asked.value, reporter_);
    if (rate.valid()) fill_in_length(rate, steps_at(rate, steps_left_));
    return rate;
  }

  Node checked_number(const Asked& asked, const Variable& variable, const Node& before) const {
    Node value = check_variable(variable, asked.value, reporter_);
    const Node* const altering = is_structural(variable, value)    ? &value
                                 : is_structural(variable, before) ? &before
                                                                   : nullptr;
    if (!value.valid() || altering == nullptr || value.text == before.text) return value;
    return reporter_.report(value,
                            asked.path + " cannot change from " + before.text + " to " + value.text + ": " +
                                std::string(variable.key->structural->why) + ", so the step has other equations",
                            std::string(another_run));
  }

  Node& config_;
  const std::optional<Ensemble>& ensemble_;
  const std::int64_t step_, steps_left_;
  const Reporter reporter_;
};

}  // namespace

bool is_of_rate(const Change& change) { return is_at_or_below(change.key, learning_rate_key); }

// The value of a schedule is a map, or the bare name of one.
bool begins_schedule(const Change& change) {
  return change.key == learning_rate_key && !parse_number(change.value).ok();
}

ChangeText text_of(const Change& change) { return {change.key + "=" + change.value, std::string(recorded)}; }

void apply_changes(Loaded& loaded, const std::vector<ChangeText>& texts, std::int64_t step, std::int64_t steps_left) {
  std::vector<Diagnostic> errors;
  Node config = *loaded.tree;
  std::vector<Asked> asked;
  for (const ChangeText& text : texts) {
    if (auto parsed = parse_change(text, config, errors)) asked.push_back(std::move(*parsed));
  }
  refuse_overlaps(asked, Reporter(errors));
  drop_overruled(asked);
  std::vector<Change> made;
  const Changer changer(config, loaded.spec.ensemble, step, steps_left, errors);
  for (const Asked& one : asked) {
    if (auto change = changer.make(one, loaded.notes)) made.push_back(std::move(*change));
  }
  Spec spec;
  if (errors.empty()) spec = bind(config, errors);
  for (Diagnostic& error : errors) {
    if (error.place.file != recorded) continue;
    error.notes.push_back("it is an entry of x-changes in the run's config.yaml; removed there, it is not made");
  }
  if (!errors.empty()) throw Error(ExitStatus::usage, std::move(errors));
  loaded.spec = std::move(spec);
  loaded.tree = std::make_shared<const Node>(std::move(config));
  loaded.changes.insert(loaded.changes.end(), made.begin(), made.end());
}

std::string change_for(const ChangedKey& changed, const Loaded& loaded) {
  const Node& config = *loaded.tree;
  const std::vector<Variable> variables = variables_of(config);
  const Variable* const variable = find_variable(variables, changed.path);
  if (variable == nullptr || changed.before.empty()) {
    const Node* const rate = get_path(&config, learning_rate_key);
    if (!is_at_or_below(changed.path, learning_rate_key) || rate == nullptr) return "";
    return std::string(learning_rate_key) + "=" + print_value(*rate);
  }
  if (!why_fixed(changed.path).empty()) return "";
  const Node after = scalar_at(config, changed.after), before = scalar_at(config, changed.before);
  if (is_structural(*variable, after) || is_structural(*variable, before)) return "";
  return changed.path + "=" + changed.after;
}

std::string print_changes(std::span<const Change> changes) {
  if (changes.empty()) return "";
  std::string out = "\n# Made by run --resume --change; another run of this config does not repeat them.\nx-changes:\n";
  for (const Change& change : changes) {
    out += "  - {step: " + std::to_string(change.step) + ", key: " + change.key + ", value: " + change.value + "}\n";
  }
  return out;
}

std::vector<Change> recorded_changes(const Node& config) {
  const Node* const section = config.is(Kind::map) ? config.find("x-changes") : nullptr;
  if (section == nullptr || !section->is(Kind::sequence)) return {};
  std::vector<Change> changes;
  for (const Node& item : section->items) {
    if (!item.is(Kind::map)) return {};
    const Node *const step = item.find("step"), *const key = item.find("key"), *const value = item.find("value");
    if (step == nullptr || key == nullptr || value == nullptr) return {};
    const auto count = parse_integer(step->text);
    if (!count.ok()) return {};
    changes.push_back({count.value, key->text, print_value(*value)});
  }
  return changes;
}

}  // namespace pmaptrain::spec
