// Structs with a row (row.h): adding their keys to the table, and storing their values from a checked tree.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

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
extern template struct Choice<OptimizerRule>;
extern template struct Choice<Schedule>;

}  // namespace pmaptrain::spec
