#include "core/spec/sweep/sweep_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "core/base/text.h"
#include "core/spec/keys.h"
#include "core/spec/load.h"
#include "core/spec/print.h"
#include "core/spec/sweep/parameters.h"
#include "core/spec/types/duration.h"
#include "core/spec/types/number.h"
#include "core/spec/types/word.h"
#include "core/spec/yaml/parse.h"
#include "core/spec/yaml/report.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

namespace fs = std::filesystem;
using Kind = Node::Kind;

constexpr std::array<std::string_view, 12> sweep_keys = {
    "base",   "set",  "parameters", "replicates",     "search",    "trials",
    "metric", "mode", "value",      "max_concurrent", "vectorize", "seed"};
// The name of the sweep in the sweep.yaml of its folder.
constexpr const char* name_key = "x-name";

template <class List>
std::vector<std::string> strings(const List& list) {
  return {list.begin(), list.end()};
}

// Whether the values of this key are keys themselves, which --set addresses one by one.
bool maps_keys_to_values(std::string_view name) {
  return name == "set" || name == "parameters" || name == "replicates";
}

bool is_sweep_key(std::string_view name) {
  return std::find(sweep_keys.begin(), sweep_keys.end(), name) != sweep_keys.end();
}

std::string text_of_path(const std::vector<Node>& segments, std::size_t from) {
  std::string path;
  for (std::size_t i = from; i < segments.size(); ++i) path = path_below(path, segments[i].text);
  return path;
}

// Puts the value of a --set into the tree. A map of keys is addressed by its name and the whole key below it.
void set_value(Node& root, const Assignment& assignment, const Reporter& reporter, std::vector<std::string>& notes) {
  const std::vector<Node>& segments = assignment.segments;
  const auto note_replaced = [&](const Node* before) {
    const bool is_option = before != nullptr && before->source && before->source->option;
    if (is_option) notes.push_back(said_at(segments.front()) + " replaces what " + said_at(*before) + " has set");
  };
  const std::string first = segments.front().text;
  const bool maps_keys = maps_keys_to_values(first);
  if (is_sweep_key(first) && segments.size() == 1) {
    note_replaced(root.find(first));
    root.erase(first);
    if (!assignment.value.is(Kind::null)) root.add(segments.front(), assignment.value);
    return;
  }
  if (is_sweep_key(first) && !maps_keys) {
    reporter.report(segments[1], fmt::format("--set takes '{}' as a whole", first), "");
    return;
  }
  const std::string above = maps_keys ? first : "set";
  const std::string path = text_of_path(segments, maps_keys ? 1 : 0);
  if (!maps_keys && child(root_key(), first) == nullptr) {
    std::vector<std::string> names = strings(sweep_keys);
    for (const Key* key : children(root_key())) names.emplace_back(key->name());
    reporter.report(segments.front(), fmt::format("'{}' is no key of a sweep or of a config", first),
                    suggest(first, names, "keys"));
    return;
  }
  Node* map = root.find(above);
  if (map == nullptr || !map->is(Kind::map)) {
    root.erase(above);
    map = &root.add(scalar_at(segments.front(), above), empty_at(segments.front(), Kind::map));
  }
  note_replaced(map->find(path));
  map->erase(path);
  Node key = scalar_at(segments.front(), path);
  key.length = segments.back().column + segments.back().length - segments.front().column;
  map->add(std::move(key), assignment.value);
}

class SweepReader {
 public:
  SweepReader(Node root, std::vector<Diagnostic>& errors) : root_(std::move(root)), reporter_(errors) {}

  SweepFile read(const std::string& path) {
    const Node* const name = root_.is(Kind::map) ? root_.find(name_key) : nullptr;
    out_.spec.name = name != nullptr && name->is(Kind::scalar) ? name->text : fs::path(path).stem().string();
    if (!root_.is(Kind::map)) {
      reporter_.report(root_, "a sweep file is a map of keys", help_);
      return std::move(out_);
    }
    const bool is_config = root_.find("base") == nullptr && root_.find("parameters") == nullptr &&
                           (root_.find("model") != nullptr || root_.find("data") != nullptr);
    if (is_config) {
      reporter_.report(root_, "this is the config of a run, not a sweep file",
                       fmt::format("pmaptrain run {} trains it; a sweep file names it: base: {}", shell_quoted(path),
                                   fs::path(path).filename().string()));
      return std::move(out_);
    }
    for (const Node& key : root_.keys) {
      if (is_sweep_key(key.text) || key.text.starts_with("x-")) continue;
      const bool of_config = child(root_key(), key.text) != nullptr;
      reporter_.report(key, fmt::format("unknown key '{}' in a sweep", key.text),
                       of_config ? "keys of the config go below 'set', for all trials, or below 'parameters'"
                                 : suggest(key.text, strings(sweep_keys), "keys"));
    }
    read_base();
    read_set();
    read_parameters();
    read_replicates();
    read_search();
    read_measure();
    read_rest();
    return std::move(out_);
  }

 private:
  const Node* get(std::string_view name) const {
    const Node* const node = root_.find(name);
    return node == nullptr || node->is(Kind::null) || !node->valid() ? nullptr : node;
  }

  // A checked scalar of the file; none where it is missing or wrong.
  std::optional<Node> scalar(std::string_view name, const Type& type, Key key) const {
    const Node* const node = get(name);
    if (node == nullptr) return std::nullopt;
    key.path = name;
    key.type = type;
    Node checked = type.check(key, *node, reporter_);
    if (!checked.valid()) return std::nullopt;
    return checked;
  }

  void read_base() {
    const Node* const base = get("base");
    if (base == nullptr) {
      reporter_.report(root_, "a sweep needs 'base', the config that its trials begin with", "base: config.yaml");
      return;
    }
    if (!base->is(Kind::scalar) || base->text.empty()) {
      reporter_.report(*base, fmt::format("base takes the path of a config, not {}", describe(*base)),
                       "base: config.yaml");
      return;
    }
    const fs::path file = base->text;
    const std::string& directory = base->source && !base->source->option ? base->source->directory : "";
    out_.base = file.is_absolute() || directory.empty() ? fs::absolute(file).string()
                                                        : (fs::path(directory) / file).lexically_normal().string();
    if (!is_utf8(out_.base)) {
      reporter_.report(*base, fmt::format("the path of the base, '{}', is not UTF-8", out_.base),
                       "rename its folder: the sweep writes the whole path into a YAML file");
    }
    root_.find("base")->text = out_.base;
    root_.find("base")->quoted = true;
  }

  void read_set() {
    const Node* const set = get("set");
    if (set == nullptr) return;
    if (!set->is(Kind::map)) {
      reporter_.report(*set, fmt::format("set takes a map of keys, not {}", describe(*set)),
                       "set: {train.duration: 9 epochs}");
      return;
    }
    for (std::size_t i = 0; i < set->keys.size(); ++i) out_.set.push_back({segments_of(set->keys[i]), set->items[i]});
  }

  void read_parameters() {
    const Node* const parameters = get("parameters");
    if (parameters == nullptr || !parameters->is(Kind::map) || parameters->keys.empty()) {
      reporter_.report(parameters != nullptr ? *parameters : root_,
                       "a sweep needs 'parameters', the keys of which trials have values of their own",
                       "parameters: {optimizer.learning_rate: {log_uniform: [1.0e-4, 1.0e-1]}}");
      return;
    }
    for (std::size_t i = 0; i < parameters->keys.size(); ++i) {
      const Node& key = parameters->keys[i];
      if (key.text == "seed") {
        out_.spec.notes.emplace_back(
            "'seed' is a parameter: trials then compete by luck; replicates: {seed: [0, 1, 2]} takes the mean over "
            "seeds");
      }
      std::optional<ReadParameter> parameter = read_parameter(key, parameters->items[i], reporter_);
      if (!parameter) continue;
      out_.spec.parameters.push_back(std::move(parameter->parameter));
      out_.keys.push_back(key);
      out_.values.push_back(std::move(parameter->values));
      out_.free.push_back(parameter->free);
    }
  }

  void read_replicates() {
    const Node* const replicates = get("replicates");
    if (replicates == nullptr) {
      out_.replicates.emplace_back();
      return;
    }
    if (!replicates->is(Kind::map) || replicates->keys.empty()) {
      reporter_.report(*replicates,
                       fmt::format("replicates takes a map of keys to lists, not {}", describe(*replicates)),
                       "replicates: {seed: [0, 1, 2]}");
      return;
    }
    for (std::size_t i = 0; i < replicates->keys.size(); ++i) {
      const Node &key = replicates->keys[i], &list = replicates->items[i];
      if (!list.is(Kind::sequence) || list.items.empty()) {
        reporter_.report(list.valid() ? list : key,
                         fmt::format("'{}' takes a list with a value for each replicate", key.text),
                         "replicates: {seed: [0, 1, 2]}");
        return;
      }
      if (i == 0) out_.replicates.resize(list.items.size());
      if (list.items.size() != out_.replicates.size()) {
        reporter_.report(list,
                         fmt::format("'{}' has {} values, and '{}' {}", key.text, list.items.size(),
                                     replicates->keys[0].text, out_.replicates.size()),
                         "lists of replicates are paired, so they have equal lengths");
        return;
      }
      for (std::size_t r = 0; r < list.items.size(); ++r) {
        out_.replicates[r].push_back({segments_of(key), list.items[r]});
      }
    }
    out_.spec.replicates = static_cast<std::int64_t>(out_.replicates.size());
  }

  bool is_grid() const {
    return std::all_of(out_.spec.parameters.begin(), out_.spec.parameters.end(), [](const SweepParameter& one) {
      return one.space == Space::choice || one.space == Space::range || one.space == Space::integer;
    });
  }

  void read_search() {
    SweepSpec& spec = out_.spec;
    const Node* const search = get("search");
    if (search == nullptr) {
      if (!is_grid()) {
        reporter_.report(root_, "a sweep over a range of real numbers needs 'search'",
                         "search: random, and trials: 32");
      }
    } else if (search->is(Kind::scalar) && (search->text == "grid" || search->text == "random")) {
      spec.search = search->text == "grid" ? Search::grid : Search::random;
    } else if (search->is(Kind::map) && search->keys.size() == 1 && search->keys.front().text == "successive_halving") {
      spec.search = Search::successive_halving;
      read_halving(search->keys.front(), search->items.front());
    } else {
      reporter_.report(*search, fmt::format("search is grid, random or successive_halving, not {}", describe(*search)),
                       "search: {successive_halving: {min: 1 epoch, factor: 3}}");
      return;
    }
    Key key;
    key.low = 1;
    key.high = static_cast<double>(most_trials);
    const std::optional<Node> trials = scalar("trials", Type::integer, key);
    if (trials) spec.trials = parsed_as<std::int64_t>(*trials);
    if (spec.search != Search::grid) {
      if (get("trials") == nullptr) {
        reporter_.report(search != nullptr ? *search : root_, "this search needs 'trials', their number", "trials: 32");
      }
      return;
    }
    for (std::size_t i = 0; i < spec.parameters.size() && search != nullptr; ++i) {
      if (is_grid()) break;
      const SweepParameter& one = spec.parameters[i];
      if (one.space == Space::choice || one.space == Space::range || one.space == Space::integer) continue;
      reporter_.report(out_.values[i].front(),
                       fmt::format("a grid takes choice, range and int, not {}", to_string(one.space)),
                       "search: random, and trials: 32");
    }
    if (get("trials") != nullptr) {
      reporter_.report(*get("trials"), "a grid has as many trials as combinations, so it takes no 'trials'",
                       "search: random takes it");
    }
    double count = 1;
    for (const SweepParameter& one : spec.parameters) {
      count *= one.space == Space::integer ? one.high - one.low + 1
                                           : static_cast<double>(std::max<std::size_t>(one.values.size(), 1));
    }
    if (count > static_cast<double>(most_trials)) {
      reporter_.report(
          *get("parameters"),
          fmt::format("this grid has {:.0f} combinations; the most are {}", count, with_commas(most_trials)),
          "search: random draws some of them");
      return;
    }
    spec.trials = static_cast<std::int64_t>(count);
  }

  void read_halving(const Node& name, const Node& options) {
    const std::string help = "successive_halving: {min: 1 epoch, factor: 3}";
    if (!options.is(Kind::map)) {
      reporter_.report(name, "successive_halving takes min, the length of the first rung", help);
      return;
    }
    for (const Node& key : options.keys) {
      if (key.text != "min" && key.text != "factor") {
        reporter_.report(key, fmt::format("unknown key '{}' in successive_halving", key.text),
                         suggest(key.text, {"min", "factor"}, "keys"));
      }
    }
    Key key;
    key.path = "min";
    key.type = Type::duration;
    key.time = true;  // refused with a reason of its own
    key.low = 1;
    if (const Node* const min = options.find("min"); min != nullptr && min->valid()) {
      const Node checked = Type::duration.check(key, *min, reporter_);
      if (checked.valid()) Takes<Duration>::store(checked, out_.spec.first_rung);
      out_.spec.first_rung.place = place_of(*min);
    } else {
      reporter_.report(name, "successive_halving needs 'min', the length of the first rung", help);
    }
    key.path = "factor";
    key.type = Type::integer;
    key.low = 2;
    key.high = 100;
    if (const Node* const factor = options.find("factor"); factor != nullptr && factor->valid()) {
      const Node checked = Type::integer.check(key, *factor, reporter_);
      if (checked.valid()) out_.spec.factor = parsed_as<std::int64_t>(checked);
    }
  }

  void read_measure() {
    SweepSpec& spec = out_.spec;
    const Node* const metric = get("metric");
    out_.metric = metric != nullptr ? *metric : root_;
    if (metric != nullptr && !metric->is(Kind::scalar)) {
      reporter_.report(*metric, fmt::format("metric takes the name of a measure, not {}", describe(*metric)),
                       "metric: loss");
      return;
    }
    out_.says_metric = metric != nullptr;
    spec.metric = metric != nullptr ? metric->text : "loss";
    Key key;
    key.words = {"min", "max"};
    const std::optional<Node> mode = scalar("mode", Type::word, key);
    out_.says_mode = mode.has_value();
    spec.mode = mode ? mode->text == "max" ? Mode::max : Mode::min : mode_of(spec.metric);
    key.words = {"best", "last"};
    const std::optional<Node> value = scalar("value", Type::word, key);
    spec.by_best = !value || value->text == "best";
  }

  void read_rest() {
    Key key;
    key.low = 1;
    key.high = 4096;
    key.words = {"auto"};
    const std::optional<Node> most = scalar("max_concurrent", Type::integer, key);
    if (most && most->text != "auto") out_.spec.max_concurrent = parsed_as<std::int64_t>(*most);
    key = Key();
    key.words = {"auto", "false"};
    const std::optional<Node> vectorize = scalar("vectorize", Type::word, key);
    out_.spec.vectorize = !vectorize || vectorize->text == "auto";
    const std::optional<Node> seed = scalar("seed", Type::seed, Key());
    if (seed) out_.spec.seed = parsed_as<std::uint64_t>(*seed);
    fill_in("metric", out_.spec.metric);
    fill_in("mode", to_string(out_.spec.mode));
    fill_in("value", out_.spec.by_best ? "best" : "last");
    fill_in("max_concurrent", "auto");
    fill_in("vectorize", "auto");
    fill_in("seed", "0");
    fill_in(name_key, out_.spec.name);
    if (get("search") == nullptr) fill_in("search", to_string(out_.spec.search));
    out_.tree = root_;
  }

  void fill_in(const std::string& name, const std::string& value) {
    if (get(name) != nullptr) return;
    root_.erase(name);
    root_.add(scalar_at(root_, name), scalar_at(root_, value));
  }

  Node root_;
  Reporter reporter_;
  SweepFile out_;
  std::string help_ = "it has base, parameters and search; docs/sweeps.md has an example";
};

// A file that is missing has help of its own, unless another one has nearly its name.
Parsed parse_sweep(const std::string& file) {
  try {
    return parse(file);
  } catch (const Error& error) {
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    if (diagnostics.front().help.starts_with("CONFIG is ")) {
      diagnostics.front().help = "SWEEP is a YAML file or the folder of a sweep; docs/sweeps.md has an example";
    }
    throw Error(error.status(), std::move(diagnostics));
  }
}

}  // namespace

std::vector<std::string> sweep_settings() {
  std::vector<std::string> names;
  for (const std::string_view name : sweep_keys) {
    if (!maps_keys_to_values(name) && child(root_key(), name) == nullptr) names.emplace_back(name);
  }
  return names;
}

std::vector<Node> segments_of(const Node& key) {
  std::vector<Node> segments;
  std::string segment;
  char quote = 0;
  for (const char c : key.text) {
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && segment.empty() && (c == '"' || c == '\'')) {
      quote = c;
    } else if (quote == 0 && c == '.') {
      segments.push_back(scalar_at(key, std::exchange(segment, {})));
    } else {
      segment += c;
    }
  }
  segments.push_back(scalar_at(key, std::move(segment)));
  return segments;
}

SweepFile read_sweep_file(const std::string& path, const std::vector<std::string>& set) {
  std::error_code error;
  const std::string file = fs::is_directory(path, error) ? (fs::path(path) / "sweep.yaml").string() : path;
  Parsed parsed = parse_sweep(file);
  std::vector<Diagnostic> errors = std::move(parsed.errors);
  Node root = *parsed.root;
  std::vector<std::string> notes;
  for (const std::string& argument : set) {
    if (const auto assignment = parse_assignment(argument, errors)) {
      set_value(root, *assignment, Reporter(errors), notes);
    }
  }
  SweepFile sweep = SweepReader(std::move(root), errors).read(file);
  sweep.spec.notes.insert(sweep.spec.notes.begin(), notes.begin(), notes.end());
  if (!errors.empty()) throw Error(ExitStatus::usage, std::move(errors));
  return sweep;
}

}  // namespace pmaptrain::spec
