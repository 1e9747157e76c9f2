// A fused_rows equation as CUDA C++: a thread for each row that is shorter than a wide group of a reduction, a block of
// as many threads as that group for each longer one.
#pragma once

#include <string_view>

#include "core/ops/fused/gpu_source.h"
#include "core/ops/fused_rows/fused_rows.h"

namespace pmaptrain::ops {

// No result may be the memory of an operand, which is read anew for each reduction.
GpuSource gpu_source_of_rows(const FusedRows& op, const GpuRequest& request, std::string_view name);

}  // namespace pmaptrain::ops
