// An entry of a list of layers, and the interface of all kinds of layers.
//
// A layer is one file of this folder and one line of list.cpp: a struct of its values, which declares their keys
// (core/declare/kind.h), and these functions:
//
//   std::optional<Node> plan(const LayerInput& in) const
//
// Either `static constexpr bool looks_ahead`, a function of this name, or, of a layer that has others inside,
// `std::vector<Inside> inside() const`. Optional: `static constexpr bool takes_tokens`, `takes_lengths`,
// `reads_before`. LayerRules says what they are.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/declare/kind.h"

namespace pmaptrain::layers {

struct Layer;
struct LayerInput;
struct Node;

// A list of layers inside of a layer. Their paths begin with that of the layer and `prefix`: ".shortcut.".
struct Inside {
  std::string prefix;
  const std::vector<Layer>* layers = nullptr;
  std::optional<std::int64_t> times = {};  // how often they are applied, with the number of each time in the path
};

// The interface of all kinds.
class LayerRules {
 public:
  virtual ~LayerRules() = default;

  // The name in the config: "conv".
  virtual const std::string& name() const = 0;
  // The layer's output, its parameters and its equations (node.h). Returns nothing if the layer does not fit its input,
  // after reporting that to in.errors.
  virtual std::optional<Node> plan(const LayerInput& in) const = 0;
  // Whether a position of a sequence sees those after it; false for a layer that has others inside.
  virtual bool looks_ahead() const = 0;
  // Whether a position reads those before it, and the layer leaves nothing of them in Forward::cache. A text that is
  // continued is then computed as a whole for each token.
  virtual bool reads_before() const = 0;
  // The layers inside, in the order of their equations.
  virtual std::vector<Inside> inside() const = 0;
  // Whether its input are tokens: integers of the data, which are not made numbers before it.
  virtual bool takes_tokens() const = 0;
  // Whether it leaves padding behind a sequence out. Without a constant, only a layer whose positions see none after
  // them does, which then needs to do nothing.
  virtual bool takes_lengths() const = 0;
};

// The interface for a layer of one kind (node.h).
template <class Kind>
class Held;

// A layer of any kind.
struct LayerKind : declare::Any<LayerRules, Held> {
  using Any::Any;
};
// The list of all kinds: list.cpp.
const std::vector<declare::AnyKind>& family(declare::Tag<LayerKind>);

// What is computed in which element type: all in f32; or the operands of products, activations and their cotangents in
// bf16 (Micikevicius et al., "Mixed Precision Training", 2018).
enum class PrecisionPolicy { float32, mixed_bfloat16 };
constexpr std::array<declare::Word<PrecisionPolicy>, 2> words_of(declare::Tag<PrecisionPolicy>) {
  return {{{"float32", PrecisionPolicy::float32}, {"mixed_bfloat16", PrecisionPolicy::mixed_bfloat16}}};
}

// What parallelism.tensor does with a layer, where the config says it.
enum class TensorPolicy { none };
constexpr std::array<declare::Word<TensorPolicy>, 1> words_of(declare::Tag<TensorPolicy>) {
  return {{{"none", TensorPolicy::none}}};
}

struct Layer {
  std::string name;  // unique in its list; default: the kind and its index among that kind (conv_0)
  LayerKind kind;
  Place place;
  std::optional<PrecisionPolicy> precision = {};  // default: that of the list around it
  std::optional<bool> remat = {};                 // whether the backward pass computes its activations again
  std::optional<TensorPolicy> tensor = {};        // whether devices leave it whole; default: as division.h says

  bool has_kind() const { return static_cast<bool>(kind); }
  static declare::Declaration<Layer> keys();
};

// The first layer of a list, or of those inside of its layers, for which `holds(layer)` is true; null if there is none.
// A layer comes before those inside of it.
template <class Holds>
const Layer* find_layer(const std::vector<Layer>& layers, const Holds& holds) {
  for (const Layer& layer : layers) {
    if (holds(layer)) return &layer;
    for (const Inside& inside : layer.kind->inside()) {
      if (const Layer* found = find_layer(*inside.layers, holds)) return found;
    }
  }
  return nullptr;
}
// The first layer that has no others inside.
inline const Layer* first_leaf(const std::vector<Layer>& layers) {
  return find_layer(layers, [](const Layer& layer) { return layer.kind->inside().empty(); });
}

}  // namespace pmaptrain::layers
