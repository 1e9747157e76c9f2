// Which layers of a model devices along axes of the mesh divide, and how (parallelism.tensor).
//
// Layers state what may be divided (Divisible, Cut). Two layers of a list, or of plain lists inside of it, are a pair
// if the first may be divided by columns and the second by rows, and all between them keep features as they are: one
// sum over the devices forward and one backward serve both. Attention, swiglu and embedding are divided inside, at the
// same price. What a list takes and gives is whole, so residual connections and norms need to know nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/layers/node.h"
#include "core/mesh/mesh.h"

namespace pmaptrain::layers {

// Fewer classes are not divided: their sums over devices would cost more than the columns.
inline constexpr std::int64_t least_divided_classes = 256;

struct DivideOptions {
  AxisSet axes;
  std::int64_t devices = 1;      // along these
  std::string name;              // of the axes, for errors
  bool divides_classes = false;  // whether the loss takes a part of the classes
};

// Divides the layers of a model. Returns the axes along which its output is divided: each device has some of the
// classes, the last ones padding. Reports layers that would be divided, and whose sizes the devices do not divide.
AxisSet divide_layers(std::vector<Node>& nodes, const DivideOptions& options, std::vector<Diagnostic>& errors);

// Whether any layer is divided.
bool any_is_divided(const std::vector<Node>& nodes);

}  // namespace pmaptrain::layers
