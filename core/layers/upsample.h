// Images and sequences that are a whole number of times as large.
#pragma once

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "core/equations/arithmetic.h"
#include "core/layers/keys.h"
#include "core/layers/node.h"
#include "core/layers/window.h"

namespace pmaptrain::layers {

enum class UpsampleMethod { nearest, bilinear };
constexpr std::array<declare::Word<UpsampleMethod>, 2> words_of(declare::Tag<UpsampleMethod>) {
  return {{{"nearest", UpsampleMethod::nearest}, {"bilinear", UpsampleMethod::bilinear}}};
}

// Along a dimension: each element is the one after it (`by` is 1) or before it (-1), and at the end itself.
inline Value shifted(Builder& b, Value x, std::size_t dim, int by) {
  const Shape shape = b.type(x).shape;
  const auto range = [&](std::int64_t first, std::int64_t end) {
    std::vector<std::int64_t> starts(shape.size(), 0), limits = shape;
    starts[dim] = first, limits[dim] = end;
    return b.emit(ops::Slice{std::move(starts), std::move(limits)}, {x});
  };
  const std::int64_t size = shape[dim];
  if (size == 1) return x;
  const Value first = by > 0 ? range(1, size) : range(0, 1),
              second = by > 0 ? range(size - 1, size) : range(0, size - 1);
  return b.emit(ops::Concatenate{static_cast<std::int64_t>(dim)}, {first, second});
}

// Dimension `dim` `scale` times as large. The centre of element i of n is at (i + 1/2) / n of both, as in
// jax.image.resize and in PyTorch without align_corners. It is linear between two centres, and constant beyond the
// first and the last one.
inline Value upsampled(Builder& b, Value x, std::size_t dim, std::int64_t scale) {
  Shape shape = b.type(x).shape, apart = shape;
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(dim) + 1, 1);
  std::vector<Value> parts;
  for (std::int64_t k = 0; k < scale; ++k) {
    const double offset = (static_cast<double>(k) + 0.5) / static_cast<double>(scale) - 0.5;  // from the centre
    Value part = x;
    if (offset != 0) {
      const Value neighbour = mul(b, shifted(b, x, dim, offset > 0 ? 1 : -1), std::abs(offset));
      part = add(b, mul(b, x, 1 - std::abs(offset)), neighbour);
    }
    parts.push_back(b.emit(ops::Reshape{apart}, {part}));
  }
  const Value together = b.emit(ops::Concatenate{static_cast<std::int64_t>(dim) + 1}, parts);
  shape[dim] *= scale;
  return b.emit(ops::Reshape{std::move(shape)}, {together});
}

// Each element `scale` times along each dimension but those of examples and channels.
inline Value repeated_around(Builder& b, Value x, std::int64_t scale) {
  const Shape from = b.type(x).shape;
  Shape apart{from.front()}, shape = from;
  std::vector<std::int64_t> dims{0};
  for (std::size_t d = 1; d + 1 < from.size(); ++d) {
    dims.push_back(std::ssize(apart));
    apart.insert(apart.end(), {from[d], scale});
    shape[d] *= scale;
  }
  dims.push_back(std::ssize(apart));
  apart.push_back(from.back());
  return b.emit(ops::Reshape{std::move(shape)}, {b.emit(ops::Broadcast{std::move(apart), std::move(dims)}, {x})});
}

struct Upsample {
  std::int64_t scale = 2;
  UpsampleMethod method = UpsampleMethod::nearest;

  static Declaration<Upsample> declaration() {
    return declare::kind<Upsample>(
        {.path = "upsample",
         .meaning = "Makes an image, or a sequence, `scale` times as large along each dimension but the channels.",
         .example = "- upsample: {scale: 2, method: bilinear}"},
        field(&Upsample::scale, {.path = "scale",
                                 .need = Need::required,
                                 .low = 2,
                                 .high = 64,
                                 .shorthand = true,
                                 .meaning = "How many times as large.",
                                 .example = "scale: 2"}),
        field(&Upsample::method,
              {.path = "method",
               .meaning = "nearest: each element is repeated. bilinear: linear between the centres of "
                          "elements, as PyTorch has it without align_corners.",
               .example = "method: bilinear"}));
  }
  static constexpr bool looks_ahead = true;  // it is no part of a text that is continued

  std::optional<Node> plan(const LayerInput& in) const {
    if (in.shape.size() < 2 || in.shape.size() > 4) {
      return in.refuse(
          "takes images [height,width,channels], sequences [positions,channels] or volumes "
          "[depth,height,width,channels]; its input is " +
              in.shown(),
          "a vector becomes an image by reshape: [height, width, channels]");
    }
    Node layer = method == UpsampleMethod::nearest ? in.start_with_input_dtype() : in.start();
    for (std::size_t d = 0; d + 1 < layer.output.size(); ++d) layer.output[d] *= scale;
    layer.image = in.image.empty() ? Shape{} : image_of_windows(layer.output);
    layer.apply = [scale = scale, method = method, storage = in.precision.storage](const LayerCall& call, Value x) {
      Builder& b = call.b;
      const DType dtype = b.type(x).dtype;
      if (method == UpsampleMethod::bilinear) x = cast(b, x, storage);  // rounded once
      if (method == UpsampleMethod::nearest) return repeated_around(b, x, scale);
      const std::size_t channels = b.type(x).shape.size() - 1;
      for (std::size_t d = 1; d < channels; ++d) x = upsampled(b, x, d, scale);
      return cast(b, x, dtype);
    };
    return layer;
  }
};

}  // namespace pmaptrain::layers
