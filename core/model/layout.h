// The names, shapes and order of elements that parameters have in files of Flax and of PyTorch.
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

// Whose names and order of elements the parameters in a file have.
enum class ParameterLayout { flax, torch };
constexpr std::array<declare::Word<ParameterLayout>, 2> words_of(declare::Tag<ParameterLayout>) {
  return {{{"flax", ParameterLayout::flax}, {"torch", ParameterLayout::torch}}};
}

// How a file stores a parameter. Several may be ranges of one array of the file (TorchParameter::whole): the shape is
// that of the range, the name that of the array.
struct StoredParameter {
  std::string name;
  Shape shape;
  // The file has the parameter in the shape `view` with its dimensions in the order `axes`: dimension i of the file is
  // dimension axes[i] of the view.
  Shape view;
  std::vector<std::int64_t> axes;
  std::size_t reversed = 0;  // so many of the first dimensions of the view are in reverse order in the file

  bool is_reordered() const;
};

// `transposed`: whether the dimensions of the parameter are in PyTorch's order; none: if the layout is PyTorch's.
StoredParameter stored(const Parameter& parameter, ParameterLayout layout,
                       std::optional<bool> transposed = std::nullopt);

// Reorders the elements of a parameter to the order of the file, and back. `element_bytes` is the size of an element.
std::vector<std::byte> to_stored(const StoredParameter& stored, std::span<const std::byte> elements,
                                 std::size_t element_bytes);
std::vector<std::byte> from_stored(const StoredParameter& stored, std::span<const std::byte> elements,
                                   std::size_t element_bytes);

}  // namespace pmaptrain::model
