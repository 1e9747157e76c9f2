// The dimensions of an operand as a reduction processes them.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/shape.h"
#include "core/ops/support/boxes.h"

namespace pmaptrain::ops {

// Groups of kept and reduced dimensions of the operand. The contiguous innermost dimensions are `rows` and `columns`;
// the others are `outer_kept` and `outer_reduced`, with strides of the operand and of the result.
struct ReduceGroups {
  Dims kept_sizes, kept_strides, kept_result_strides;
  Dims reduced_sizes, reduced_strides;
  std::int64_t rows = 1;     // reduced and contiguous; each row has `columns` elements
  std::int64_t columns = 1;  // kept and contiguous
};

ReduceGroups reduce_groups(const Shape& shape, std::span<const std::int64_t> dims);

}  // namespace pmaptrain::ops
