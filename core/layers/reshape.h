// Layers that only move elements.
#pragma once

#include <algorithm>
#include <numeric>

#include "core/equations/arithmetic.h"
#include "core/layers/keys.h"
#include "core/layers/node.h"

namespace pmaptrain::layers {

// The image whose elements a vector has after a reshape.
inline Shape image_of(const LayerInput& in, const Shape& output) {
  if (output.size() != 1) return {};
  if (in.shape.size() == 3) return in.shape;
  if (in.shape.size() == 4) return {in.shape[0] * in.shape[1], in.shape[2], in.shape[3]};  // of a volume
  return numel(in.image) == numel(in.shape) ? in.image : Shape{};
}

// To a vector, row-major.
struct Flatten {
  static Declaration<Flatten> declaration() {
    return declare::kind<Flatten>(
        {.path = "flatten", .meaning = "Reshapes each example to one dimension.", .example = "- flatten"});
  }
  static constexpr bool looks_ahead = true;

  std::optional<Node> plan(const LayerInput& in) const {
    Node layer = in.start_with_input_dtype();
    layer.output = {numel(in.shape)};
    layer.image = image_of(in, layer.output);
    layer.apply = [features = numel(in.shape)](const LayerCall& call, Value x) {
      Builder& b = call.b;
      return b.emit(ops::Reshape{{b.type(x).shape.front(), features}}, {x});
    };
    return layer;
  }
};

// Row-major.
struct Reshape {
  std::vector<std::int64_t> shape;  // of one example; one size may be -1

  static Declaration<Reshape> declaration() {
    return declare::kind<Reshape>(
        {.path = "reshape",
         .meaning = "Reshapes each example; elements stay in row-major order.",
         .example = "- reshape: [7, 7, 64]"},
        field(&Reshape::shape, {.path = "shape",
                                .need = Need::required,
                                .low = -1,
                                .shorthand = true,
                                .meaning = "The new shape of one example, without the batch dimension. One "
                                           "size may be -1, which is then inferred.",
                                .example = "shape: [7, 7, -1]"}));
  }
  static constexpr bool looks_ahead = true;

  std::optional<Node> plan(const LayerInput& in) const {
    Shape sizes = shape;
    const std::int64_t elements = numel(in.shape);
    std::int64_t known = 1;
    std::int64_t* open = nullptr;
    bool several = false;
    for (std::int64_t& size : sizes) {
      if (size != -1) {
        known = size == 0 || known > elements / size ? elements + 1 : known * size;
      } else {
        several = several || open != nullptr;
        open = &size;
      }
    }
    if (several) {
      return in.refuse("has the shape " + to_string(sizes) + ", with more than one -1", "at most one size can be -1");
    }
    const bool divides = known <= elements && elements % known == 0;
    if (open != nullptr && divides) *open = elements / known;
    if (open != nullptr ? !divides : known != elements) {
      return in.refuse("has the shape " + to_string(sizes) + ", which does not match the " + std::to_string(elements) +
                           " elements of its input " + in.shown(),
                       "use sizes with the product " + std::to_string(elements));
    }
    Node layer = in.start_with_input_dtype();
    layer.output = sizes;
    layer.image = image_of(in, sizes);
    layer.apply = [sizes](const LayerCall& call, Value x) {
      Shape rows = {call.b.type(x).shape.front()};
      rows.insert(rows.end(), sizes.begin(), sizes.end());
      return call.b.emit(ops::Reshape{rows}, {x});
    };
    return layer;
  }
};

struct Transpose {
  std::vector<std::int64_t> permutation;  // of the dimensions of one example

  static Declaration<Transpose> declaration() {
    return declare::kind<Transpose>(
        {.path = "transpose", .meaning = "Permutes the dimensions of each example.", .example = "- transpose: [1, 0]"},
        field(
            &Transpose::permutation,
            {.path = "permutation",
             .need = Need::required,
             .high = 7,
             .shorthand = true,
             .meaning = "The dimensions of an example, counted from 0 without the batch dimension, in their new order.",
             .example = "permutation: [2, 0, 1]"}));
  }
  static constexpr bool looks_ahead = true;

  std::optional<Node> plan(const LayerInput& in) const {
    std::vector<std::int64_t> sorted = permutation;
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::int64_t> all(in.shape.size());
    std::iota(all.begin(), all.end(), std::int64_t{0});
    if (sorted != all) {
      std::reverse(all.begin(), all.end());
      return in.refuse("has the permutation " + to_string(permutation) + ", which does not name each of the " +
                           std::to_string(in.shape.size()) + " dimensions of its input " + in.shown() + " once",
                       all.empty() ? "leave the layer out" : "they are counted from 0, for example " + to_string(all));
    }
    Node layer = in.start_with_input_dtype();
    std::vector<std::int64_t> of_batch{0};
    for (std::size_t d = 0; d < in.shape.size(); ++d) {
      const std::int64_t from = permutation[d];
      layer.output[d] = in.shape[static_cast<std::size_t>(from)];
      of_batch.push_back(from + 1);
    }
    layer.apply = [of_batch](const LayerCall& call, Value x) { return call.b.emit(ops::Transpose{of_batch}, {x}); };
    return layer;
  }
};

}  // namespace pmaptrain::layers
