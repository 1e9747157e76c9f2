// The words of generated kernels: element types, bits, and the work of one element.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/graph/op.h"

namespace pmaptrain::ops {

std::string_view type_text(DType dtype);
// An integer of an element's size.
std::string_view word_text(DType dtype);
std::uint64_t bits_of(DType dtype, double value);

// An element of type `dtype` from the operands' elements ("v0, v1"): for elementwise ops, casts, views and constants of
// one value.
std::string element_text(const Op& op, DType dtype, std::string_view operands);

}  // namespace pmaptrain::ops
