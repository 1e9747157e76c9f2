// What other ops need of the GPU kernels of reductions.
#pragma once

#include <string_view>

#include "core/kernel/gpu.h"
#include "core/ops/reduce/loops.h"

namespace pmaptrain::ops {

// The launch that combines the parts of columns (ColumnOrder) to `rows` rows of results of the element type `to`.
// `base` is "sum" or "max". The parts have the type in which such elements are computed: f32 for bf16. If `outers` is
// more than 1, each column has as many sets of parts, one after another.
GpuLaunch combine_columns(std::string_view base, DType to, GpuArgument result, GpuArgument parts,
                          const ColumnOrder& order, std::int64_t rows, std::int64_t outers = 1);

}  // namespace pmaptrain::ops
