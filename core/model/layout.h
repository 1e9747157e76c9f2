// The names, shapes and order of elements that parameters have in files of Flax, of PyTorch and of well-known models.
//
// Flax stores them as this program does. PyTorch uses other names, and kernels whose dimensions have another order:
// (in, out) is (out, in), and (height, width, in, out) is (out, in, height, width). PyTorch's images have the channels
// first. A flattened image therefore has its elements in the order channels, height, width, and the rows of the kernel
// of a following dense layer have this order too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/layers/node.h"

namespace pmaptrain::model {

using namespace layers;

// Whose names and order of elements the parameters in a file have. The last four are those of one kind of model each
// (other_names.h).
enum class ParameterLayout { flax, torch, hf_gpt2, hf_llama, hf_vit, torchvision_resnet };
constexpr std::array<declare::Word<ParameterLayout>, 6> words_of(declare::Tag<ParameterLayout>) {
  return {{{"flax", ParameterLayout::flax},
           {"torch", ParameterLayout::torch},
           {"hf_gpt2", ParameterLayout::hf_gpt2},
           {"hf_llama", ParameterLayout::hf_llama},
           {"hf_vit", ParameterLayout::hf_vit},
           {"torchvision_resnet", ParameterLayout::torchvision_resnet}}};
}
// Whether it is that of one kind of model.
constexpr bool has_other_names(ParameterLayout layout) {
  return layout != ParameterLayout::flax && layout != ParameterLayout::torch;
}

// How a file stores a parameter. Several may be equal ranges of one array of the file: `name` and `added` are those of
// arrays, `shape` is that of the range.
struct StoredParameter {
  std::string name;
  Shape shape;
  // The file has the parameter in the shape `view` with its dimensions in the order `axes`: dimension i of the file is
  // dimension axes[i] of the view.
  Shape view;
  std::vector<std::int64_t> axes;
  std::size_t reversed = 0;  // so many of the first dimensions of the view are in reverse order in the file
  // It is range `part` of `parts` of dimension `along` of the array. The same range of the array `added` is added to
  // it.
  std::size_t along = 0;
  std::int64_t part = 0, parts = 1;
  std::string added = {};

  bool is_reordered() const;
  bool is_part() const { return parts > 1; }
  Shape array_shape() const;
};

// `transposed`: whether the dimensions of the parameter are in PyTorch's order; none: as the layout has them. A
// parameter for which the layout of a kind of model has no name has the one that PyTorch would give it.
StoredParameter stored(const Parameter& parameter, ParameterLayout layout,
                       std::optional<bool> transposed = std::nullopt);

// Where the array of a file has the elements of a parameter: element (i0, i1, ...) of `view` is at
// first + i0 * strides[0] + i1 * strides[1] + ...
struct Placement {
  std::int64_t first = 0;
  std::vector<std::int64_t> strides;
};
Placement placement(const StoredParameter& stored);

// Writes the elements of a parameter to where the array of a file has them. `element_bytes` is the size of an element.
void to_stored(const StoredParameter& stored, std::span<const std::byte> elements, std::size_t element_bytes,
               std::span<std::byte> array);
// The array with these elements; the ranges of other parameters are zero.
std::vector<std::byte> to_stored(const StoredParameter& stored, std::span<const std::byte> elements,
                                 std::size_t element_bytes);
// The elements of a parameter, from the array of a file.
std::vector<std::byte> from_stored(const StoredParameter& stored, std::span<const std::byte> array,
                                   std::size_t element_bytes);

}  // namespace pmaptrain::model
