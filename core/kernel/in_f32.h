// Computes on bf16 arrays with kernels for f32: converts operands to f32 copies, and rounds results to bf16.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/kernel/cpu.h"

namespace pmaptrain {

// Whether the library multiplies bf16 faster than f32: the CPU has AMX, or is not Intel's and has AVX512_BF16, and
// ONEDNN_MAX_CPU_ISA hides neither. On Intel's CPUs the instruction of AVX512_BF16 does twice the work of one for f32
// in four times its time (measured). Without such instructions, oneDNN emulates bf16 for some shapes only.
bool multiplies_bf16_faster();

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

// Lets `make` create the preparation of the packed operand for a kernel in f32. The returned one converts the operand
// first. So the kernel that make_kernel_in_f32 creates takes the packed operand as it is. Null if `make` returns null.
std::unique_ptr<CpuPreparation> make_preparation_in_f32(
    const CpuRequest& request, const std::function<std::unique_ptr<CpuPreparation>(const CpuRequest&)>& make);

}  // namespace pmaptrain
