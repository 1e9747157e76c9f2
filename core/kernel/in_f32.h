// Elements of bf16 computed in f32: on copies of the operands, with results that are rounded at the end.
#pragma once

#include <functional>
#include <memory>

#include "core/kernel/cpu.h"

namespace pmaptrain {

// Whether products of bf16 are left to a kernel library: the CPU has instructions for them (AVX512_BF16 or AMX), which
// ONEDNN_MAX_CPU_ISA may hide. Elsewhere the library emulates them for some shapes only, and f32 is as fast.
bool has_bf16_instructions();

bool has_bf16(const ReferenceCall& call);
bool has_bf16(const CpuRequest& request);

// Calls `reference` with f32 in place of bf16. It allocates.
void call_in_f32(const ReferenceCall& call, const std::function<void(const ReferenceCall&)>& reference);

// The kernel that `make` gives for the request with f32 in place of bf16. The copies are in scratch memory.
std::unique_ptr<CpuKernel> make_kernel_in_f32(const CpuRequest& request,
                                              const std::function<std::unique_ptr<CpuKernel>(const CpuRequest&)>& make);

}  // namespace pmaptrain
