// Elementwise equations as CUDA C++: the text of a kernel for one equation, which a compiler at run time (NVRTC) takes,
// and in tests the host's. An element's work is the functors of core/ops/elementwise/functors.h, the CPU's own.
#pragma once

#include <string>
#include <string_view>

#include "core/graph/op.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

struct GpuSource {
  std::string text;  // of one function, extern "C" __global__, whose shapes are constants
  GpuLaunch launch;  // of the function: the results' addresses, then the operands'
};

// Of an elementwise op, a fused region, rows that are fused (core/ops/fused_rows) or a constant with a list of values:
// what gpu() leaves to generated code. A result of an elementwise op or a fused region may be the memory of an operand
// of its size. The launch refers to `name`, which the caller keeps.
GpuSource gpu_source(const Op& op, const GpuRequest& request, std::string_view name);

// What stands in front of any number of such texts in one translation unit. It includes nothing under NVRTC.
std::string_view gpu_prelude();

}  // namespace pmaptrain::ops
