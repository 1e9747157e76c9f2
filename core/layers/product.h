// The product of rows with a kernel, and the term that an adapter of the kernel adds.
#pragma once

#include <cstddef>
#include <optional>

#include "core/layers/node.h"

namespace pmaptrain::layers {

// Whether devices divide the rows of a kernel's matrix.
bool divides_rows(const Parameter& kernel);

// x [..., in] times the kernel number `kernel` of the node as its matrix, plus the bias before the sum is rounded:
// [..., out]. Where devices divide the rows of the matrix, x is their part of [..., in], and the terms of all are
// added.
Value product(const LayerCall& call, Value x, std::size_t kernel, std::optional<Value> bias = std::nullopt);

}  // namespace pmaptrain::layers
