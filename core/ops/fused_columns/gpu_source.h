// Generates CUDA C++ source for a fused_columns equation. In the first launch a lane of threads computes the elements
// of a part of a column (ColumnOrder in core/ops/reduce/loops.h) and adds them up. The second one combines the parts of
// a column. A CentredSum takes its elements in the first launch (shifted.cuh) and its mean in the second.
#pragma once

#include <string_view>

#include "core/ops/fused/gpu_source.h"
#include "core/ops/fused_columns/fused_columns.h"
#include "core/ops/reduce/loops.h"

namespace pmaptrain::ops {

// The parts of all sums in scratch memory, those of a sum by device. Parts of a CentredSum have four numbers each.
struct PartsOfSums {
  ColumnOrder order;
  std::vector<std::size_t> offsets;  // by sum, in bytes
  std::size_t bytes = 0;
};
PartsOfSums parts_of_sums(const GpuRequest& request);

GpuSource gpu_source_of_columns(const GpuRequest& request, std::string_view name);

}  // namespace pmaptrain::ops
