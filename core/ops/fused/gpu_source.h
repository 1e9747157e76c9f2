// Generates CUDA C++ source for elementwise equations: one kernel for each equation. NVRTC compiles it at run time; in
// tests the host's compiler does. Elements are computed with the same functors as on the CPU
// (core/ops/elementwise/functors.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

struct GpuSource {
  std::string text;  // functions, extern "C" __global__, in which shapes are constants
  // The launches, in order. Arguments are the addresses of results or of scratch memory, then of operands.
  std::vector<GpuLaunch> launches;
};

// Generates the source for an elementwise op, a fused region, fused rows or columns (core/ops/fused_rows,
// core/ops/fused_columns) or a constant with a list of values: the equations that gpu() leaves to generated code. A
// result of an elementwise op or a fused region may use the memory of an operand of the same size. The launches refer
// to `name`, which the caller must keep; generated_name() has the names of their functions.
GpuSource gpu_source(const Op& op, const GpuRequest& request, std::string_view name);

// The text that must precede any number of such sources in one translation unit. It includes nothing under NVRTC.
std::string_view gpu_prelude();

}  // namespace pmaptrain::ops
