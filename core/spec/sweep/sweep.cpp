#include "core/spec/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/spec/bind/variables.h"
#include "core/spec/changes/override.h"
#include "core/spec/keys.h"
#include "core/spec/load.h"
#include "core/spec/print.h"
#include "core/spec/rows/sections.h"
#include "core/spec/sweep/set_once.h"
#include "core/spec/sweep/sweep_file.h"
#include "core/spec/yaml/find.h"
#include "core/spec/yaml/report.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;
using Json = nlohmann::ordered_json;

Json json_of(const Node& node) {
  switch (node.kind) {
    case Kind::sequence: {
      Json list = Json::array();
      for (const Node& item : node.items) list.push_back(json_of(item));
      return list;
    }
    case Kind::map: {
      Json map = Json::object();
      for (std::size_t i = 0; i < node.keys.size(); ++i) map[node.keys[i].text] = json_of(node.items[i]);
      return map;
    }
    case Kind::scalar: {
      if (node.quoted) return node.text;
      if (const auto truth = parse_boolean(node.text)) return *truth;
      if (const auto whole = parse_integer(node.text); whole.ok()) return whole.value;
      if (const auto number = parse_number(node.text); number.ok()) return number.value;
      return node.text;
    }
    default: return nullptr;
  }
}

// The segments and the value of a key that the sweep itself sets, with the place of `where`.
Assignment assign(const Node& where, std::string_view path, Node value) {
  return {segments_of(scalar_at(where, std::string(path))), std::move(value)};
}

Diagnostic diagnostic_at(const Node& node, std::string message, std::string help) {
  return {kind_of(node), place_of(node), std::move(message), std::move(help), {}};
}

[[noreturn]] void fail_at(const Node& node, std::string message, std::string help) {
  throw Error(ExitStatus::usage, diagnostic_at(node, std::move(message), std::move(help)));
}

// The key of a --set: segments with dots are quoted.
std::string key_text(const std::vector<Node>& segments) {
  std::string path;
  for (const Node& segment : segments) {
    const bool is_plain = segment.text.find_first_of(".='") == std::string::npos;
    path = path_below(path, is_plain ? segment.text : '"' + segment.text + '"');
  }
  return path;
}

// The value at a key of a checked config; null where the key is written otherwise there, as by the name of a layer.
const Node* checked_value(const Node& config, const std::vector<Node>& segments) {
  const Node* at = &config;
  for (const Node& segment : segments) {
    if (at->is(Kind::map)) {
      at = at->find(segment.text);
    } else {
      const auto index = parse_integer(segment.text);
      const bool is_item =
          at->is(Kind::sequence) && index.ok() && index.value >= 0 && index.value < std::ssize(at->items);
      at = is_item ? &at->items[static_cast<std::size_t>(index.value)] : nullptr;
    }
    if (at == nullptr) return nullptr;
  }
  return at;
}

// Makes of a value of the file one for --set: paths are absolute, as in the checked value, where there is one.
void make_ready(Node& value, const Node* checked) {
  if (value.is(Kind::null)) value.text = "null";
  if (value.is(Kind::scalar) && checked != nullptr && checked->is(Kind::scalar) && checked->text.starts_with('/')) {
    value.text = checked->text;
    value.quoted = true;
  }
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    const Node* below = nullptr;
    if (checked != nullptr && value.is(Kind::map)) below = checked->find(value.keys[i].text);
    const bool are_items = checked != nullptr && checked->is(Kind::sequence) && value.is(Kind::sequence);
    if (are_items && checked->items.size() == value.items.size()) below = &checked->items[i];
    make_ready(value.items[i], below);
  }
}

// The first value in `b` that is another one than in `a`.
const Node& first_difference(const Node& a, const Node& b) {
  for (std::size_t i = 0; a.items.size() == b.items.size() && i < b.items.size(); ++i) {
    if (print_value(a.items[i]) != print_value(b.items[i])) return first_difference(a.items[i], b.items[i]);
  }
  return b;
}

// A sweep that does not say by what it selects does as its base.
void adopt_measure(SweepFile& file, const Node& base) {
  const Node* const metric = get_path(&base, "train.checkpoint.best.metric");
  const Node* const mode = get_path(&base, "train.checkpoint.best.mode");
  SweepSpec& spec = file.spec;
  if (metric != nullptr && metric->is(Kind::scalar) && !file.says_metric) {
    spec.metric = metric->text;
    if (!file.says_mode) spec.mode = mode_of(spec.metric);
  }
  const bool is_metric = spec.metric == (metric != nullptr ? metric->text : "loss");
  const bool is_mode = mode != nullptr && mode->is(Kind::scalar) && (mode->text == "min" || mode->text == "max");
  if (is_mode && is_metric && !file.says_mode) spec.mode = mode->text == "max" ? Mode::max : Mode::min;
  file.tree.find("metric")->text = spec.metric;
  file.tree.find("mode")->text = to_string(spec.mode);
}

// A mode that takes the worst values of a metric for the best is one mistake in two: only a base that states it itself
// is believed.
std::optional<Diagnostic> doubtful_mode_of(const SweepFile& file, const Node& base) {
  const SweepSpec& spec = file.spec;
  const std::optional<Mode> better = better_values(spec.metric);
  if (!file.says_mode || !better || *better == spec.mode) return std::nullopt;
  const Node* const mode = get_path(&base, "train.checkpoint.best.mode");
  if (mode != nullptr && mode->is(Kind::scalar) && mode->text == to_string(spec.mode)) return std::nullopt;
  return diagnostic_at(*file.tree.find("mode"),
                       fmt::format("mode: {} takes the {} {} for the best, and {} values of it are better",
                                   to_string(spec.mode), spec.mode == Mode::min ? "smallest" : "largest", spec.metric,
                                   *better == Mode::max ? "larger" : "smaller"),
                       fmt::format("remove mode, or write mode: {}", to_string(*better)));
}

// The sweep selects the best checkpoint; a base that selects by something else is a contradiction.
void check_best(const SweepFile& file, const Node& base) {
  const Node* const best = get_path(&base, "train.checkpoint.best");
  if (best == nullptr) return;
  const Node* const metric = best->is(Kind::map) ? best->find("metric") : nullptr;
  const Node* const mode = best->is(Kind::map) ? best->find("mode") : nullptr;
  const std::string said = fmt::format("the sweep selects by {} ({})", file.spec.metric, to_string(file.spec.mode));
  if (metric != nullptr && metric->is(Kind::scalar) && metric->text != file.spec.metric) {
    fail_at(*metric, said + fmt::format(", and its base by {}", metric->text),
            "let them agree: a sweep's metric and mode are those of checkpoint.best; in the sweep: set: "
            "{train.checkpoint.best.metric: " +
                file.spec.metric + "}");
  }
  if (mode != nullptr && mode->is(Kind::scalar) && mode->text != to_string(file.spec.mode)) {
    fail_at(*mode, said + fmt::format(", and its base takes the {}", mode->text),
            fmt::format("let them agree, in the sweep: set: {{train.checkpoint.best.mode: {}}}, or mode: {}",
                        to_string(file.spec.mode), mode->text));
  }
}

// What a config of a trial may not have, whatever set it.
void check_trial(const Node& config) {
  if (const Node* const ensemble = get_path(&config, "ensemble"); ensemble != nullptr && ensemble->is(Kind::map)) {
    fail_at(*ensemble, "a trial of a sweep is no ensemble",
            "remove it: the sweep itself trains trials that differ in numbers as one");
  }
  const Node* const time = get_path(&config, "train.max_time");
  if (time != nullptr && time->is(Kind::scalar) && time->text != "never") {
    fail_at(*time, "a trial of a sweep has no train.max_time: values would depend on the machine's speed",
            "set: {train.max_time: never} leaves it out");
  }
}

}  // namespace

std::string to_string(Search search) {
  switch (search) {
    case Search::grid: return "grid";
    case Search::random: return "random";
    case Search::successive_halving: break;
  }
  return "successive_halving";
}

struct Sweep::Impl {
  SweepFile file;
  Parsed base;
  std::string resolved;
  std::optional<Diagnostic> doubtful_mode;

  Node value(std::size_t parameter, const TrialValue& value) const {
    const SweepParameter& one = file.spec.parameters[parameter];
    const std::vector<Node>& values = file.values[parameter];
    switch (one.space) {
      case Space::choice:
      case Space::range: return values.at(value.index);
      case Space::integer:
      case Space::log_integer: return scalar_at(values.front(), fmt::format("{:.0f}", value.number));
      case Space::uniform:
      case Space::log_uniform: break;
    }
    return scalar_at(values.front(), exact(value.number));
  }

  // Whether a trial has the data.seed of its base, or one of the sweep file.
  bool sets_data_seed(const Assignments& assigned) const {
    const auto has_seed = [](const Node* node) {
      return node != nullptr && !node->is(Kind::null) && !node->is(Kind::blank);
    };
    bool has = has_seed(get_path(base.root.get(), "data.seed"));
    for (const Assignment& one : assigned) {
      if (one.segments.front().text != "data") continue;
      if (one.segments.size() == 1) has = has_seed(one.value.find("seed"));
      if (one.segments.size() == 2 && one.segments[1].text == "seed") has = has_seed(&one.value);
    }
    return has;
  }

  // What a trial's run has in place of the base's values, but for its name.
  Assignments assignments(const TrialValues& values, std::int64_t replicate) const {
    Assignments assigned = file.set;
    for (std::size_t i = 0; i < values.size(); ++i) {
      Node one = value(i, values[i]);
      if (!file.free[i]) {
        assigned.push_back({segments_of(file.keys[i]), std::move(one)});
        continue;
      }
      for (std::size_t k = 0; k < one.keys.size(); ++k) {
        assigned.push_back({segments_of(one.keys[k]), one.items[k]});
      }
    }
    const Assignments& replicated = file.replicates.at(static_cast<std::size_t>(replicate));
    assigned.insert(assigned.end(), replicated.begin(), replicated.end());
    Node best = empty_at(file.metric, Kind::map);
    best.add(scalar_at(file.metric, "metric"), scalar_at(file.metric, file.spec.metric));
    best.add(scalar_at(file.metric, "mode"), scalar_at(file.metric, to_string(file.spec.mode)));
    assigned.push_back(assign(file.metric, "train.checkpoint.best", std::move(best)));
    if (!sets_data_seed(assigned)) {
      const Node& seed = *file.tree.find("seed");
      assigned.push_back(assign(seed, "data.seed", scalar_at(seed, std::to_string(file.spec.seed))));
    }
    return assigned;
  }
};

Sweep Sweep::load(const std::string& path, const std::vector<std::string>& set) {
  auto impl = std::make_shared<Impl>();
  impl->file = read_sweep_file(path, set);
  try {
    impl->base = parse(impl->file.base);
  } catch (const Error& error) {
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    diagnostics.front().notes.push_back(fmt::format("it is the base of the sweep '{}'", path));
    throw Error(error.status(), std::move(diagnostics));
  }
  std::vector<Diagnostic> errors;
  check_set_once(impl->file, *impl->base.root, errors);
  Node base = *impl->base.root;
  std::vector<Diagnostic> of_trials;  // told when their configs are made
  std::vector<std::string> notes;
  apply({}, impl->file.set, base, of_trials, notes);
  adopt_measure(impl->file, base);
  impl->doubtful_mode = doubtful_mode_of(impl->file, base);
  check_best(impl->file, base);
  if (!errors.empty()) throw Error(ExitStatus::usage, std::move(errors));
  impl->resolved = print_config(impl->file.tree);
  Sweep sweep;
  sweep.impl_ = std::move(impl);
  return sweep;
}

const SweepSpec& Sweep::spec() const { return impl_->file.spec; }
const std::string& Sweep::resolved() const { return impl_->resolved; }

const std::string& Sweep::base() const { return impl_->file.base; }
const std::optional<Diagnostic>& Sweep::doubtful_mode() const { return impl_->doubtful_mode; }

Loaded Sweep::config(const TrialValues& values, std::int64_t replicate, const std::string& name) const {
  Assignments assigned = impl_->assignments(values, replicate);
  const Node& place = impl_->file.metric;
  Node named = scalar_at(place, name);
  named.quoted = true;
  assigned.push_back(assign(place, "name", std::move(named)));
  Loaded loaded = spec::load(impl_->base, {}, assigned);
  check_trial(*loaded.tree);
  return loaded;
}

std::vector<std::string> Sweep::settings(const TrialValues& values, std::int64_t replicate) const {
  const Loaded loaded = config(values, replicate, spec().name);
  std::vector<std::string> settings;
  for (Assignment& one : impl_->assignments(values, replicate)) {
    make_ready(one.value, checked_value(*loaded.tree, one.segments));
    settings.push_back(key_text(one.segments) + "=" + print_value(one.value));
  }
  return settings;
}

void Sweep::check_comparable(const Loaded& one, const Loaded& other) const {
  if (impl_->file.spec.metric != "loss") return;
  for (const std::string_view key : {"loss", "data.source", "data.validation", "data.normalize_targets"}) {
    const Node* const a = get_path(one.tree.get(), key);
    const Node* const b = get_path(other.tree.get(), key);
    if ((a == nullptr ? "" : print_value(*a)) == (b == nullptr ? "" : print_value(*b))) continue;
    const Node& place = a != nullptr && b != nullptr ? first_difference(*a, *b)
                        : b != nullptr               ? *b
                        : a != nullptr               ? *a
                                                     : impl_->file.tree;
    fail_at(place, fmt::format("losses of trials that differ in '{}' do not compare", key), "select by another metric");
  }
}

std::vector<std::string> Sweep::texts(const TrialValues& values) const {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < values.size(); ++i) texts.push_back(print_value(impl_->value(i, values[i])));
  return texts;
}

std::string Sweep::json(const TrialValues& values) const {
  Json map = Json::object();
  for (std::size_t i = 0; i < values.size(); ++i) {
    map[impl_->file.keys[i].text] = json_of(impl_->value(i, values[i]));
  }
  return json_text(map);
}

std::string Sweep::space_text(std::size_t parameter) const {
  return print_value(*impl_->file.tree.find("parameters")->find(spec().parameters.at(parameter).name));
}

Diagnostic Sweep::error_at(std::string_view key, std::string message, std::string help) const {
  const Node* node = get_path(&impl_->file.tree, key);
  if (node == nullptr || node->fallback) node = &impl_->file.tree;
  return diagnostic_at(*node, std::move(message), std::move(help));
}

Diagnostic Sweep::error_at(std::size_t parameter, std::string message, std::string help) const {
  const Node& values = *impl_->file.tree.find("parameters")->find(spec().parameters.at(parameter).name);
  return diagnostic_at(values, std::move(message), std::move(help));
}

void Sweep::fail(std::string_view key, std::string message, std::string help) const {
  throw Error(ExitStatus::usage, error_at(key, std::move(message), std::move(help)));
}

std::string ensemble_config(std::span<const Loaded> members, const std::string& name) {
  constexpr const char* axis = "trials";
  Node tree = *members.front().tree;
  Node vary = empty_at(tree, Kind::map);
  for (const Variable& variable : variables_of(tree)) {
    Node values = empty_at(tree, Kind::sequence);
    for (const Loaded& member : members) {
      Node of_member = *member.tree;
      values.items.push_back(node_at(of_member, variable.path));
    }
    const bool differ = std::any_of(values.items.begin(), values.items.end(),
                                    [&](const Node& value) { return value.text != values.items.front().text; });
    if (differ) vary.add(scalar_at(tree, variable.path), std::move(values));
  }
  Node axes = empty_at(tree, Kind::sequence);
  const auto add_axis = [&](const Node& key, const Node& size) {
    Node one = empty_at(tree, Kind::map);
    one.add(key, size);
    axes.items.push_back(std::move(one));
  };
  add_axis(scalar_at(tree, axis), scalar_at(tree, std::to_string(members.size())));
  Node& given = node_at(tree, "mesh.axes");
  for (std::size_t i = 0; i < given.keys.size(); ++i) add_axis(given.keys[i], given.items[i]);
  if (given.is(Kind::sequence)) axes.items.insert(axes.items.end(), given.items.begin(), given.items.end());
  given = std::move(axes);
  Node ensemble = empty_at(tree, Kind::map);
  ensemble.add(scalar_at(tree, "axis"), scalar_at(tree, axis));
  ensemble.add(scalar_at(tree, "vary"), std::move(vary));
  tree.add(scalar_at(tree, "ensemble"), std::move(ensemble));
  node_at(tree, "name") = scalar_at(tree, name);
  node_at(tree, "name").quoted = true;
  return print_config(tree);
}

std::string structure_of(const Loaded& loaded) {
  Node tree = *loaded.tree;
  for (const Variable& variable : variables_of(tree)) {
    Node& node = node_at(tree, variable.path);
    if (!is_structural(variable, node)) node.text = "*";
  }
  tree.erase("name");
  return print_value(tree);
}

}  // namespace pmaptrain::spec
