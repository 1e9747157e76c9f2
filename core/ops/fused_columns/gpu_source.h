// Generates CUDA C++ source for the first launch of a fused_columns equation: a thread computes the elements of a part
// of a column (ColumnOrder in core/ops/reduce/loops.h) and adds them up.
#pragma once

#include <string_view>

#include "core/ops/fused/gpu_source.h"
#include "core/ops/fused_columns/fused_columns.h"
#include "core/ops/reduce/loops.h"

namespace pmaptrain::ops {

// The parts of all sums in scratch memory, those of a sum by device.
struct PartsOfSums {
  ColumnOrder order;
  std::vector<std::size_t> offsets;  // by sum, in bytes
  std::size_t bytes = 0;
};
PartsOfSums parts_of_sums(const GpuRequest& request);

GpuSource gpu_source_of_columns(const GpuRequest& request, std::string_view name);

}  // namespace pmaptrain::ops
