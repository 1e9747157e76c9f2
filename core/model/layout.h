// The names, shapes and order of elements that parameters have in files of Flax and of PyTorch.
//
// Flax has them as this program does. PyTorch has other names and transposes kernels: (in, out) is (out, in), and
// (height, width, in, out) is (out, in, height, width). Its images have the channels first, so a flattened image has
// its elements in the order channels, height, width, and so have the rows of the kernel of a dense layer after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/model/layers.h"

namespace pmaptrain::model {

// How a file has a parameter.
struct StoredParameter {
  std::string name;
  Shape shape;
  // The file has the parameter in the shape `view` with its dimensions in the order `axes`: dimension i of the file is
  // dimension axes[i] of the view.
  Shape view;
  std::vector<std::int64_t> axes;

  bool is_reordered() const;
};

// `transposed`: whether the dimensions of the parameter are in PyTorch's order; none: if the layout is PyTorch's.
StoredParameter stored(const Parameter& parameter, spec::ParameterLayout layout,
                       std::optional<bool> transposed = std::nullopt);

// The elements of a parameter in the order of the file, and back. An element has so many bytes.
std::vector<std::byte> to_stored(const StoredParameter& stored, std::span<const std::byte> elements,
                                 std::size_t element_bytes);
std::vector<std::byte> from_stored(const StoredParameter& stored, std::span<const std::byte> elements,
                                   std::size_t element_bytes);

}  // namespace pmaptrain::model
