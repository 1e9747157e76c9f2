// Which elements of an undivided row an op draws (random.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/kernel/reference.h"
#include "core/ops/support/boxes.h"

namespace pmaptrain::ops {

// Of an operand `offset`, i32[] or i64[], what counts: it modulo 2^32.
std::uint32_t offset_in(DType dtype, const std::byte* data);
// The offset where a call has so many operands; 0 without it.
std::uint32_t offset_of(const ReferenceCall& call, std::size_t operand);

// The elements of a row as a box of the undivided row, outermost dimension first. Dimensions whose elements follow one
// another are joined, and there is at least one.
struct RowPart {
  Dims sizes, strides;

  // Without strides the elements follow one another.
  RowPart(const Shape& shape, std::span<const std::int64_t> of_undivided);

  std::int64_t inner_size() const { return sizes[sizes.rank - 1]; }
  std::int64_t inner_stride() const { return strides[sizes.rank - 1]; }
  std::int64_t elements() const;
  // The index of an element of the box, without the offset.
  std::uint32_t index_of(std::int64_t element) const;
};

}  // namespace pmaptrain::ops
