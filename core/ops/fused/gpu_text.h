// Expressions in generated kernels: element types, bits, and the computation of one element.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/graph/op.h"

namespace pmaptrain::ops {

std::string_view type_text(DType dtype);
// An unsigned integer type with the size of an element.
std::string_view word_text(DType dtype);
std::uint64_t bits_of(DType dtype, double value);

// An expression of type `dtype` from elements of the operands ("v0, v1"), for elementwise ops, casts, views and
// constants of one value.
std::string element_text(const Op& op, DType dtype, std::string_view operands);

}  // namespace pmaptrain::ops
