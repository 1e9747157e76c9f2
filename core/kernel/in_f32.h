// Computes on bf16 arrays with kernels for f32: converts operands to f32 copies, and rounds results to bf16.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/kernel/cpu.h"

namespace pmaptrain {

// Whether the CPU has instructions for bf16 products (AVX512_BF16 or AMX), and ONEDNN_MAX_CPU_ISA does not hide them.
// Without them, oneDNN emulates bf16 for some shapes only and is not faster than in f32.
bool has_bf16_instructions();

// A text that is equal where the kernel library chooses kernels of the same instruction set.
std::string instruction_set();

// Whether an operand or a result is bf16.
bool has_bf16(const ReferenceCall& call);
bool has_bf16(const CpuRequest& request);

// Calls `reference` with bf16 operands converted to f32. Allocates memory.
void call_in_f32(const ReferenceCall& call, const std::function<void(const ReferenceCall&)>& reference);

// Replaces bf16 by f32 in the request, and lets `make` create a kernel for that. The returned kernel takes arrays as in
// the original request, and converts them to and from f32 copies in its scratch memory.
std::unique_ptr<CpuKernel> make_kernel_in_f32(const CpuRequest& request,
                                              const std::function<std::unique_ptr<CpuKernel>(const CpuRequest&)>& make);

}  // namespace pmaptrain
