// Expressions in generated kernels: element types, bits, and the computation of one element.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/op.h"

namespace pmaptrain::ops {

std::string_view type_text(DType dtype);
// An unsigned integer type with the size of an element.
std::string_view word_text(DType dtype);
std::uint64_t bits_of(DType dtype, double value);

// An expression of type `dtype` from elements of the operands ("v0, v1"), for elementwise ops, casts, views and
// constants of one value.
std::string element_text(const Op& op, DType dtype, std::string_view operands);

// A reduction of elements: the names of the reducer and of the type in which elements are combined, and an element.
struct ReductionText {
  std::string reducer, type, element;
};
// "sum" or "max" of elements of this type.
ReductionText reduction_text(const Op& op, DType dtype, std::string_view element);
// Several reductions in one pass: nested pairs (core/ops/reduce/reducers.h).
ReductionText joined(const std::vector<ReductionText>& reductions);
// The result of one of `count` reductions that were joined, from the pair's name.
std::string result_text(std::string_view pair, std::size_t i, std::size_t count);

}  // namespace pmaptrain::ops
