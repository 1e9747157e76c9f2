// All ops: the table for parser, builder and differentiation, and the kernels.
#pragma once

#include <memory>
#include <optional>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain {

const OpSet& all_ops();

// The kernels of an op. Exactly one of reference and exchange is set, except for ops that the runtime or the
// interpreter carries out itself (pvary, axis_index, loop), which have neither.
struct KernelRules {
  ReferenceFunction reference = nullptr;
  // Whether elements of bf16 are computed in f32, on copies: `reference` does so itself. `cpu` and `prepare` are given
  // them only if cpu_takes_bf16, and may leave them to the copies.
  bool in_f32 = false, cpu_takes_bf16 = false;
  std::unique_ptr<CpuKernel> (*cpu)(const void* op, const CpuRequest& request) = nullptr;
  void (*exchange)(const void* op, const CollectiveCall& call) = nullptr;
  // The operand that the CPU kernel takes faster in a layout of its own, and the copy into that layout. Null from
  // `prepare`: there is none for this request, or it saves no time.
  std::optional<std::size_t> (*prepared_operand)(const void* op) = nullptr;
  std::unique_ptr<CpuPreparation> (*prepare)(const void* op, const CpuRequest& request) = nullptr;
  // Null for an op that no GPU kernel carries out, for the reason in `no_gpu`, and for one that the runtime carries
  // out.
  GpuKernel (*gpu)(const void* op, const GpuRequest& request) = nullptr;
  std::string_view no_gpu;
};
const KernelRules& kernels_of(const Op& op);

enum class KernelChoice { best, reference };

// The kernel for a local op: the CPU one where there is one that takes the request (and `choice` allows it), else the
// reference.
std::unique_ptr<CpuKernel> make_cpu_kernel(const Op& op, const CpuRequest& request,
                                           KernelChoice choice = KernelChoice::best);

// The preparation of the op's operand for the kernel that make_cpu_kernel makes of the same request; null where it
// takes the operand as it is.
std::unique_ptr<CpuPreparation> make_preparation(const Op& op, const CpuRequest& request,
                                                 KernelChoice choice = KernelChoice::best);

// The GPU kernel for a local op. Throws Error (usage), with the op's name, where there is none.
GpuKernel make_gpu_kernel(const Op& op, const GpuRequest& request);
GpuKernel gpu_kernel_by(const KernelRules& rules, const Op& op, const GpuRequest& request);

}  // namespace pmaptrain
