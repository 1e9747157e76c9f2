// The table of all ops for parser, builder and differentiation, and their kernels.
#pragma once

#include <memory>
#include <optional>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain {

const OpSet& all_ops();

// The kernels of an op. Exactly one of `reference` and `exchange` is set. Ops that the runtime or the interpreter
// carries out itself (pvary, axis_index, loop) have neither.
struct KernelRules {
  ReferenceFunction reference = nullptr;
  // Whether bf16 elements are computed in f32, on copies. `reference` then accepts bf16 itself. `cpu` and `prepare` see
  // bf16 only if cpu_takes_bf16 is set, and may refuse it so that copies are made.
  bool in_f32 = false, cpu_takes_bf16 = false;
  // Whether an example's positions are multiplied in turn, so that a product has one row of it, however many it has.
  bool multiplies_in_turn = false;
  // Whether `cpu` sees CpuRequest::columns. It may refuse them so that they are copied.
  bool cpu_takes_columns = false;
  std::unique_ptr<CpuKernel> (*cpu)(const void* op, const CpuRequest& request) = nullptr;
  void (*exchange)(const void* op, const CollectiveCall& call) = nullptr;
  // The operand that the CPU kernel can read faster in another layout, and the copy to that layout. `prepare` returns
  // null if there is no such copy for the request, or if it saves no time.
  std::optional<std::size_t> (*prepared_operand)(const void* op) = nullptr;
  std::unique_ptr<CpuPreparation> (*prepare)(const void* op, const CpuRequest& request) = nullptr;
  // Null if no GPU kernel carries out the op, for the reason in `no_gpu`, or if the runtime carries it out.
  GpuKernel (*gpu)(const void* op, const GpuRequest& request) = nullptr;
  std::string_view no_gpu;
};
const KernelRules& kernels_of(const Op& op);

enum class KernelChoice { best, reference };

// The CPU kernel for a local op: the op's own kernel if it supports the request and `choice` allows it, else the
// reference.
std::unique_ptr<CpuKernel> make_cpu_kernel(const Op& op, const CpuRequest& request,
                                           KernelChoice choice = KernelChoice::best);

// The preparation of an operand for the kernel that make_cpu_kernel creates for the same request. Null if the kernel
// reads the operand as it is.
std::unique_ptr<CpuPreparation> make_preparation(const Op& op, const CpuRequest& request,
                                                 KernelChoice choice = KernelChoice::best);

// The GPU kernel for a local op. Throws Error (usage) with the op's name if there is none.
GpuKernel make_gpu_kernel(const Op& op, const GpuRequest& request);
GpuKernel gpu_kernel_by(const KernelRules& rules, const Op& op, const GpuRequest& request);

}  // namespace pmaptrain
