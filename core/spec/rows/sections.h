// Structs with a row (row.h): adding their keys to the table, and storing their values from a checked tree.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/declare/kind.h"
#include "core/spec/rows/declared.h"
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

// A choice between the kinds of a family that declare their keys themselves.
template <declare::Family F>
struct Choice {
  static void add_keys(std::string_view path, std::vector<Key>& out) { add_kinds(path, kinds(), out); }
  static Chosen chosen(const Node& map) { return chosen_of(map, kinds()); }
  static void store(const Node& map, F& out) { store_kind(map, kinds(), &out); }

 private:
  static const Kinds& kinds() { return family(declare::Tag<F>{}); }
};
// A map that declares its keys itself.
template <declare::HasKeys Map>
struct Section<Map> {
  static void add_keys(std::string_view path, std::vector<Key>& out) {
    Map made;
    declare::keys_of<Map>().visit(made, added_below(path, out));
  }
  static void store(const Node& map, Map& out) { declare::keys_of<Map>().visit(out, stored_from(map)); }
};

// What mode_of() gives, in words: "max for accuracy and f1, else min".
std::string_view default_mode_text();
// Which values of a measure are better; none for a name that is none of a measure.
std::optional<Mode> better_values(const std::string& measure);

extern template struct Section<Spec>;
extern template struct Section<MeshSpec>;
extern template struct Section<Parallelism>;
extern template struct Section<Fsdp>;
extern template struct Section<Tensor>;
extern template struct Section<Ensemble>;
extern template struct Section<DataSpec>;
extern template struct Section<Normalize>;
extern template struct Section<ValidationShare>;
extern template struct Section<Limit>;
extern template struct Section<ModelSpec>;
extern template struct Section<InitialFrom>;
extern template struct Section<model::Lora>;
extern template struct Section<optimizers::Options>;
extern template struct Section<optimizers::ParameterGroup>;
extern template struct Section<optimizers::ReduceOnPlateau>;
extern template struct Section<TrainSpec>;
extern template struct Section<CheckpointSpec>;
extern template struct Section<BestSpec>;
extern template struct Section<EarlyStoppingSpec>;
extern template struct Section<optimizers::Ema>;
extern template struct Section<LossSpikeSpec>;

}  // namespace pmaptrain::spec
