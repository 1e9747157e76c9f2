// Computes on bf16 arrays with kernels for f32: converts operands to f32 copies, and rounds results to bf16.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/kernel/cpu.h"

namespace pmaptrain {

// Whether the library multiplies bf16 faster than f32: the CPU has AMX, or has AVX512_BF16 and is not Intel's, and
// ONEDNN_MAX_CPU_ISA hides neither. On Intel's CPUs AVX512_BF16 is slower than f32: an instruction does twice the work
// in four times the time (measured on a Xeon with AVX512_FP16 and without AMX). Without either, oneDNN emulates bf16
// for some shapes only.
bool multiplies_bf16_faster();

// A text that is equal where kernels have the same instruction set, and multiply bf16 in the same way.
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

// Lets `make` create the preparation of operand `packed` for the kernel in f32: it converts the operand, if that is
// bf16, and the kernel that make_kernel_in_f32 creates takes it as it is. Null if `make` returns null.
std::unique_ptr<CpuPreparation> make_preparation_in_f32(
    const CpuRequest& request, std::size_t packed,
    const std::function<std::unique_ptr<CpuPreparation>(const CpuRequest&)>& make);

}  // namespace pmaptrain
