// Runs kernels on bf16 data in f32: operands are copied to f32, and results are rounded at the end.
#pragma once

#include <functional>
#include <memory>

#include "core/kernel/cpu.h"

namespace pmaptrain {

// Whether the CPU has instructions for bf16 products (AVX512_BF16 or AMX), so that a kernel library should compute
// them. ONEDNN_MAX_CPU_ISA may hide them. Without them the library emulates only some shapes, and f32 is as fast.
bool has_bf16_instructions();

bool has_bf16(const ReferenceCall& call);
bool has_bf16(const CpuRequest& request);

// Calls `reference` with bf16 operands converted to f32. Allocates memory.
void call_in_f32(const ReferenceCall& call, const std::function<void(const ReferenceCall&)>& reference);

// The kernel that `make` creates for the request with f32 in place of bf16. The copies are in scratch memory.
std::unique_ptr<CpuKernel> make_kernel_in_f32(const CpuRequest& request,
                                              const std::function<std::unique_ptr<CpuKernel>(const CpuRequest&)>& make);

}  // namespace pmaptrain
