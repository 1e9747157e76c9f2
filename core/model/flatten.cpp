// Layers that only move elements.
#include <algorithm>
#include <numeric>
#include <utility>

#include "core/equations/arithmetic.h"
#include "core/model/layers.h"

namespace pmaptrain::model {

namespace {

// The image whose elements a vector has after a reshape.
Shape image_of(const LayerInput& in, const Shape& output) {
  if (output.size() != 1) return {};
  return in.shape.size() == 3 ? in.shape : in.image;
}

}  // namespace

// Reshapes each example to a vector, row-major.
std::optional<Node> plan(const spec::Flatten&, const LayerInput& in) {
  Node layer = in.start_with_input_dtype();
  layer.output = {numel(in.shape)};
  layer.image = image_of(in, layer.output);
  layer.apply = [features = numel(in.shape)](const LayerCall& call, Value x) {
    Builder& b = call.b;
    return b.emit(ops::Reshape{{b.type(x).shape.front(), features}}, {x});
  };
  return layer;
}

// Reshapes each example, row-major.
std::optional<Node> plan(const spec::Reshape& reshape, const LayerInput& in) {
  Shape shape = reshape.shape;
  const std::int64_t elements = numel(in.shape);
  std::int64_t known = 1;
  std::int64_t* open = nullptr;
  bool several = false;
  for (std::int64_t& size : shape) {
    if (size != -1) {
      known = size == 0 || known > elements / size ? elements + 1 : known * size;
    } else {
      several = several || open != nullptr;
      open = &size;
    }
  }
  if (several) {
    return in.refuse("has the shape " + to_string(shape) + ", with more than one -1", "at most one size can be -1");
  }
  const bool divides = known <= elements && elements % known == 0;
  if (open != nullptr && divides) *open = elements / known;
  if (open != nullptr ? !divides : known != elements) {
    return in.refuse("has the shape " + to_string(shape) + ", which does not match the " + std::to_string(elements) +
                         " elements of its input " + in.shown(),
                     "use sizes with the product " + std::to_string(elements));
  }
  Node layer = in.start_with_input_dtype();
  layer.output = shape;
  layer.image = image_of(in, shape);
  layer.apply = [shape](const LayerCall& call, Value x) {
    Shape rows = {call.b.type(x).shape.front()};
    rows.insert(rows.end(), shape.begin(), shape.end());
    return call.b.emit(ops::Reshape{rows}, {x});
  };
  return layer;
}

// Permutes the dimensions of each example.
std::optional<Node> plan(const spec::Transpose& transpose, const LayerInput& in) {
  std::vector<std::int64_t> sorted = transpose.permutation;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int64_t> all(in.shape.size());
  std::iota(all.begin(), all.end(), std::int64_t{0});
  if (sorted != all) {
    std::reverse(all.begin(), all.end());
    return in.refuse("has the permutation " + to_string(transpose.permutation) + ", which does not name each of the " +
                         std::to_string(in.shape.size()) + " dimensions of its input " + in.shown() + " once",
                     all.empty() ? "leave the layer out" : "they are counted from 0, for example " + to_string(all));
  }
  Node layer = in.start_with_input_dtype();
  std::vector<std::int64_t> permutation{0};
  for (std::size_t d = 0; d < in.shape.size(); ++d) {
    const std::int64_t from = transpose.permutation[d];
    layer.output[d] = in.shape[static_cast<std::size_t>(from)];
    permutation.push_back(from + 1);
  }
  layer.apply = [permutation](const LayerCall& call, Value x) { return call.b.emit(ops::Transpose{permutation}, {x}); };
  return layer;
}

}  // namespace pmaptrain::model
