// Structs with a row (row.h): adding their keys to the table, and storing their values from a checked tree.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/declare/kind.h"
#include "core/optimizers/list.h"
#include "core/spec/spec.h"
#include "core/spec/types/key.h"
#include "core/spec/yaml/find.h"
#include "core/spec/yaml/node.h"

namespace pmaptrain::spec {

// A struct whose keys are in one map.
template <class T>
struct Section {
  // Adds the keys below `path`, in the order of the row.
  static void add_keys(std::string_view path, std::vector<Key>& out);
  // Stores the values of the checked map `map`. Members of `out` without a valid value are unchanged.
  static void store(const Node& map, T& out);
};

// A choice between the alternatives of a std::variant.
template <class Variant>
struct Choice;
template <class... Alternatives>
struct Choice<std::variant<Alternatives...>> {
  static void add_keys(std::string_view path, std::vector<Key>& out);
  // The alternative in the checked map `map`, if there is a valid one.
  static Chosen chosen(const Node& map);
  static void store(const Node& map, std::variant<Alternatives...>& out);
  // The key of the alternative that `value` holds.
  static std::string name(const std::variant<Alternatives...>& value);
};

// Parts of choices that do not depend on the family. A kind is made with its defaults to see the types of its
// members.
void add_kind(std::string_view path, const Key& kind, const std::function<void(const declare::Visit&)>& make,
              std::vector<Key>& out);
// Sets `found` to the alternative with this key, if the map has a valid one.
void look_for_kind(const Node& map, const Key& kind, Chosen& found);
declare::Visit stored_from(const Node& options);

// A choice between the kinds of a family that core/declare/kind.h describes.
template <class Value, const std::vector<declare::KindOf<Value>>& (*kinds)()>
struct DeclaredChoice {
  static void add_keys(std::string_view path, std::vector<Key>& out) {
    for (const declare::KindOf<Value>& kind : kinds()) {
      add_kind(
          path, kind.key, [&](const declare::Visit& visit) { kind.make(visit); }, out);
    }
  }
  static Chosen chosen(const Node& map) {
    Chosen found;
    for (const declare::KindOf<Value>& kind : kinds()) look_for_kind(map, kind.key, found);
    return found;
  }
  static void store(const Node& map, Value& out) {
    const Chosen taken = chosen(map);
    if (taken.name == nullptr) return;
    for (const declare::KindOf<Value>& kind : kinds()) {
      if (taken.name->text == kind.key.path) out = kind.make(stored_from(*taken.options));
    }
  }
};
template <>
struct Choice<optimizers::Rule> : DeclaredChoice<optimizers::Rule, optimizers::rules> {};

// What mode_of() gives, in words: "max for accuracy and f1, else min".
std::string_view default_mode_text();
// Which values of a measure are better; none for a name that is none of a measure.
std::optional<Mode> better_values(const std::string& measure);

extern template struct Section<Spec>;
extern template struct Section<MeshSpec>;
extern template struct Section<Parallelism>;
extern template struct Section<Fsdp>;
extern template struct Section<Ensemble>;
extern template struct Section<DataSpec>;
extern template struct Section<Normalize>;
extern template struct Section<ValidationShare>;
extern template struct Section<Limit>;
extern template struct Section<Augmentation>;
extern template struct Section<ModelSpec>;
extern template struct Section<InitialFrom>;
extern template struct Section<Layer>;
extern template struct Section<Metric>;
extern template struct Section<OptimizerSpec>;
extern template struct Section<ParameterGroup>;
extern template struct Section<ReduceOnPlateau>;
extern template struct Section<TrainSpec>;
extern template struct Section<CheckpointSpec>;
extern template struct Section<BestSpec>;
extern template struct Section<EarlyStoppingSpec>;
extern template struct Section<EmaSpec>;
extern template struct Section<LossSpikeSpec>;
extern template struct Choice<Source>;
extern template struct Choice<AugmentationKind>;
extern template struct Choice<LayerKind>;
extern template struct Choice<KernelInitializer>;
extern template struct Choice<VectorInitializer>;
extern template struct Choice<Loss>;
extern template struct Choice<MetricKind>;
extern template struct Choice<Schedule>;

}  // namespace pmaptrain::spec
