// Binds a checked `ensemble`: what each member would have alone. The values of a member are put into a copy of the
// config, which is bound like a config of its own, so they are checked like the key itself.
#include <algorithm>

#include "core/base/text.h"
#include "core/spec/bind/bind.h"
#include "core/spec/bind/variables.h"
#include "core/spec/keys.h"
#include "core/spec/rows/sections.h"
#include "core/spec/types/leaf.h"
#include "core/spec/yaml/find.h"
#include "core/spec/yaml/report.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

class EnsembleBinder {
 public:
  EnsembleBinder(Node& config, const BindAlone& alone, std::vector<Diagnostic>& errors)
      : config_(config), alone_(alone), errors_(errors), reporter_(errors) {}

  void bind(Spec& spec) {
    Ensemble& ensemble = *spec.ensemble;
    const Node& section = *get(&config_, "ensemble");
    const Node* const axis = get(&section, "axis");
    if (axis == nullptr || get_path(&config_, "mesh.axes") == nullptr) return;  // already reported
    ensemble.place = error_place(*axis);
    const std::optional<int> found = spec.mesh.mesh.find(ensemble.axis);
    if (!found) {
      std::string help = suggest(ensemble.axis, spec.mesh.mesh.names(), "axes");
      if (nearest(ensemble.axis, spec.mesh.mesh.names()).empty()) {
        help += "; an axis of its own: mesh.axes=" + with_axis_before(ensemble.axis, spec.mesh.mesh);
      }
      reporter_.report(*axis, "the mesh has no axis '" + ensemble.axis + "'", std::move(help),
                       option_notes(get_path(&config_, "mesh.axes")->items));
      return;
    }
    members_ = spec.mesh.mesh.size(*found);
    axis_ = std::span(get_path(&config_, "mesh.axes")->items).subspan(static_cast<std::size_t>(*found), 1);
    share_data_seed(spec);
    vary(*config_.find("ensemble"), spec.data.source, ensemble);
    for (std::int64_t m = 0; m < members_; ++m) ensemble.alone.push_back(member(ensemble, m));
  }

 private:
  // The members share the order of the data. The resolved config says it, so that a member can be trained alone.
  void share_data_seed(Spec& spec) {
    const Node* const seed = get(&config_, "seed");
    if (seed == nullptr || get(&config_, "data") == nullptr || get_path(&config_, "data.seed") != nullptr) return;
    Node value = *seed;
    value.fallback = true;
    config_.find("data")->add(scalar_at(*seed, "seed"), std::move(value));  // the last key of its row
    spec.data.seed = spec.seed;
  }

  // Keys in nested maps as dotted ones, each with a list.
  void flatten(const Node& map, const std::string& prefix, Node& result) const {
    for (std::size_t i = 0; i < map.keys.size(); ++i) {
      const Node& values = map.items[i];
      Node key = map.keys[i];
      key.text = path_below(prefix, key.text);
      if (values.is(Kind::map)) {
        flatten(values, key.text, result);
      } else if (result.find(key.text) != nullptr) {
        const auto first = std::find_if(result.keys.begin(), result.keys.end(),
                                        [&](const Node& other) { return other.text == key.text; });
        reporter_.report(key, "vary has '" + key.text + "' twice", "keep one of them",
                         {"the first is at " + said_at(*first)});
      } else {
        const bool list = values.is(Kind::sequence) || !values.valid();
        Node checked = list ? values
                            : reporter_.report(values.is(Kind::blank) ? key : values,
                                               key.text + " takes a list with one value for each member",
                                               "for example vary: {seed: " + numbers_to(members_) + "}");
        result.add(std::move(key), std::move(checked));
      }
    }
  }

  void vary(Node& section, const data::SourceKind& data, Ensemble& ensemble) {
    Node* const given = section.find("vary");
    if (given == nullptr || !given->valid()) return;
    Node flat = empty_at(*given, Kind::map);
    flatten(*given, "", flat);
    *given = std::move(flat);
    if (given->items.empty()) {
      reporter_.report(*given, "vary is empty, so all " + counted(members_, "member") + " would be equal",
                       "for example vary: {seed: " + numbers_to(members_) + "}");
    }
    const std::vector<Variable> variables = variables_of(config_);
    for (std::size_t i = 0; i < given->items.size(); ++i) {
      Node& key = given->keys[i];
      const Variable* const variable = find_variable(variables, resolve(config_, key.text).path);
      if (variable == nullptr) {
        refuse(key, variables);
      } else if (const auto first = std::find_if(
                     given->keys.begin(), given->keys.begin() + static_cast<std::ptrdiff_t>(i),
                     [&](const Node& other) { return resolve(config_, other.text).path == variable->path; });
                 first != given->keys.begin() + static_cast<std::ptrdiff_t>(i)) {
        reporter_.report(key, "vary has '" + variable->path + "' twice, by index and by name", "keep one of them",
                         {"'" + first->text + "' is at " + said_at(*first)});
      } else if (given->items[i].valid()) {
        check_values(*variable, key, given->items[i]);
        Varied& varied = ensemble.vary.emplace_back();
        varied.path = variable->path;
        varied.place = place_of(key);
        if (variable->path == "data.seed" && data && data->is_drawn()) {
          reporter_.report(key, "data.seed draws the examples of synthetic data, so each member would have other data",
                           "leave data.seed out of vary: members share the data and its order");
        }
        for (const Node& value : given->items[i].items) varied.values.push_back(value.text);
        values_.push_back(given->items[i]);
      }
    }
  }

  // "[0, 1, 2]"
  static std::string numbers_to(std::int64_t count) {
    std::vector<std::string> numbers;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(count, 4); ++i) numbers.push_back(std::to_string(i));
    return "[" + join(numbers, ", ") + (count > 4 ? ", ..." : "") + "]";
  }

  // "[{members: 4}, {devices: 8}]"
  static std::string with_axis_before(const std::string& name, const Mesh& mesh) {
    std::string axes = "[{" + name + ": 4}";
    for (const Axis& axis : mesh.axes()) axes += ", {" + axis.name + ": " + std::to_string(axis.size) + "}";
    return axes + "]";
  }

  void refuse(const Node& key, const std::vector<Variable>& variables) const {
    std::vector<std::string> paths;
    paths.reserve(variables.size());
    for (const Variable& variable : variables) paths.push_back(variable.path);
    const std::string all = "keys of this config that can: " + join(paths, ", ");
    const Node* const value = get_path(&config_, key.text);
    if (const Key* known = find_key(key.text); known != nullptr && known->or_number && value != nullptr) {
      refuse_schedule(key, *value, paths);
    } else if (resolve(config_, key.text).exists) {
      reporter_.report(key, "'" + key.text + "' cannot vary between the members of an ensemble", all);
    } else {
      const std::string near = nearest(key.text, paths);
      reporter_.report(key, "this config has no '" + key.text + "' to vary",
                       near.empty() ? all : "did you mean '" + near + "'?");
    }
  }

  // Refuses to vary a schedule as a whole and suggests one of its numbers, preferably the one that scales it.
  void refuse_schedule(const Node& key, const Node& schedule, std::vector<std::string> paths) const {
    std::erase_if(paths, [&](const std::string& path) { return !path.starts_with(key.text + "."); });
    const auto named = [&](const char* name) {
      return std::find_if(paths.begin(), paths.end(), [&](const auto& path) { return path.ends_with(name); });
    };
    auto best = named(".peak_value");
    if (best == paths.end()) best = named(".init_value");
    reporter_.report(key, key.text + " is a schedule, " + schedule.keys.front().text + ", which a number would replace",
                     best == paths.end() ? "vary another key" : "vary " + *best);
  }

  void check_values(const Variable& variable, const Node& key, Node& list) const {
    if (static_cast<std::int64_t>(list.items.size()) != members_) {
      reporter_.report(list,
                       key.text + " has " + counted(static_cast<std::int64_t>(list.items.size()), "value") + " for " +
                           counted(members_, "member"),
                       "give one value for each member, in order; the lists of several keys are paired",
                       option_notes(axis_));
      list.kind = Kind::invalid;
      return;
    }
    for (Node& value : list.items) {
      if (!value.valid()) continue;
      value = check_variable(variable, value, reporter_);
      if (!is_structural(variable, value)) continue;
      reporter_.report(
          value,
          std::string(variable.key->name()) + " " + value.text +
              " would give this member a program of its own: " + std::string(variable.key->structural->why),
          "the members of an ensemble share one program; leave this value to a run of its own");
    }
  }

  // Errors that all members have are reported once.
  Spec member(const Ensemble& ensemble, std::int64_t m) {
    Node config = config_;
    config.erase("ensemble");
    take_axis_away(config, ensemble.axis);
    for (std::size_t i = 0; i < ensemble.vary.size(); ++i) {
      const auto at = static_cast<std::size_t>(m);
      const Node& list = values_[i];
      if (list.valid() && list.items[at].valid()) node_at(config, ensemble.vary[i].path) = list.items[at];
    }
    std::vector<Diagnostic> found;
    Spec spec = alone_(config, found);
    for (Diagnostic& error : found) {
      const auto same = [&](const Diagnostic& other) {
        return other.message == error.message && other.place == error.place;
      };
      if (std::none_of(errors_.begin(), errors_.end(), same)) errors_.push_back(std::move(error));
    }
    return spec;
  }

  static void take_axis_away(Node& config, const std::string& name) {
    Node& axes = node_at(config, "mesh.axes");
    std::erase_if(axes.items, [&](const Node& axis) { return axis.keys.front().text == name; });
    if (get_path(&config, "data.axes") != nullptr) {
      std::erase_if(node_at(config, "data.axes").items, [&](const Node& axis) { return axis.text == name; });
    }
    if (get_path(&config, "parallelism.fsdp.axis") != nullptr) {  // an error, which is reported already
      Node& sharded = node_at(config, "parallelism.fsdp.axis");
      std::erase_if(sharded.items, [&](const Node& axis) { return axis.text == name; });
      if (sharded.items.empty()) config.erase("parallelism");
    }
    if (const Node* const divides = get_path(&config, "parallelism.tensor.axis"); divides && divides->text == name) {
      Node& parallelism = node_at(config, "parallelism");  // likewise
      parallelism.erase("tensor");
      if (parallelism.items.empty()) config.erase("parallelism");
    }
    if (!axes.items.empty()) return;
    Node one = empty_at(axes, Kind::map);
    one.add(scalar_at(axes, "devices"), with_value(scalar_at(axes, "1"), "1", std::int64_t{1}));
    axes.items.push_back(std::move(one));
    if (get_path(&config, "data.axes") != nullptr) {
      node_at(config, "data.axes").items = {scalar_at(axes, "devices")};
    }
  }

  Node& config_;
  const BindAlone& alone_;
  std::vector<Diagnostic>& errors_;
  const Reporter reporter_;
  std::int64_t members_ = 1;
  std::span<const Node> axis_;  // the axis of the members
  std::vector<Node> values_;    // by Ensemble::vary: the checked lists
};

}  // namespace

std::optional<int> ensemble_axis(const Node& config, const Mesh& mesh) {
  const Node* const axis = get_path(&config, "ensemble.axis");
  return axis == nullptr ? std::nullopt : mesh.find(axis->text);
}

void bind_ensemble(Node& config, const BindAlone& alone, std::vector<Diagnostic>& errors, Spec& spec) {
  EnsembleBinder(config, alone, errors).bind(spec);
}

}  // namespace pmaptrain::spec
