// Generates CUDA C++ source for a fused_rows equation. Rows that are shorter than a wide group of a reduction have one
// thread each. Longer rows have a block each, with as many threads as a wide group. Those that are too long for
// registers are read once for an OnlineSoftmax (softmax.cuh).
#pragma once

#include <string_view>

#include "core/ops/fused/gpu_source.h"
#include "core/ops/fused_rows/fused_rows.h"

namespace pmaptrain::ops {

// No result may use the memory of an operand, because operands are read again for each reduction.
GpuSource gpu_source_of_rows(const FusedRows& op, const GpuRequest& request, std::string_view name);

}  // namespace pmaptrain::ops
