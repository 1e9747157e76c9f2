// All ops: the table that parser, builder and differentiation are given, and the kernels behind it.
#pragma once

#include <memory>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"

namespace pmaptrain {

const OpSet& all_ops();

// What carries an op out. Exactly one of reference and exchange is set, except for ops that the runtime or the
// interpreter carries out itself (pvary, axis_index, loop), which have neither.
struct KernelRules {
  ReferenceFunction reference = nullptr;
  std::unique_ptr<CpuKernel> (*cpu)(const void* op, const CpuRequest& request) = nullptr;
  void (*exchange)(const void* op, const CollectiveCall& call) = nullptr;
};
const KernelRules& kernels_of(const Op& op);

enum class KernelChoice { best, reference };

// The kernel for a local op: the CPU one where there is one that takes the request (and `choice` allows it), else the
// reference.
std::unique_ptr<CpuKernel> make_cpu_kernel(const Op& op, const CpuRequest& request,
                                           KernelChoice choice = KernelChoice::best);

}  // namespace pmaptrain
