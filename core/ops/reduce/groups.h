// How a reduction sees its operand.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/shape.h"
#include "core/ops/support/boxes.h"

namespace pmaptrain::ops {

// The operand's dimensions as groups that alternate between kept and reduced ones, innermost group apart: `outer_kept`
// and `outer_reduced` with strides of the operand and of the result, and the contiguous inner part.
struct ReduceGroups {
  Dims kept_sizes, kept_strides, kept_result_strides;
  Dims reduced_sizes, reduced_strides;
  std::int64_t rows = 1;     // reduced and contiguous, in front of the columns
  std::int64_t columns = 1;  // kept and contiguous
};

ReduceGroups reduce_groups(const Shape& shape, std::span<const std::int64_t> dims);

}  // namespace pmaptrain::ops
