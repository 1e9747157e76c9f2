#include "core/runtime/gpu/workspace.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/kernel/gpu_budget.h"

namespace pmaptrain::gpu {
namespace {

// An upper bound for the workspace of a library's kernel. Besides the memory of the library, the workspace may contain
// f32 copies of bf16 operands, the kernel of a convolution in the library's layout, and sums that are not rounded yet.
std::size_t upper_bound_of(const Launch& launch, const GpuKernel& kernel) {
  if (const GpuAttention* const attention = kernel.find<GpuAttention>()) return attention_workspace(*attention);
  const GpuConv* const conv = kernel.find<GpuConv>();
  const bool is_conv = conv != nullptr, is_kernel_grad = is_conv && conv->kind == GpuConv::Kind::kernel_grad;
  std::size_t bytes = is_conv ? conv_budget : matmul_budget;
  const auto add = [&](const Type& type, bool is_stacked) {
    const auto count = static_cast<std::size_t>(is_stacked ? launch.logical_devices : 1);
    bytes = sum_of(bytes, product_of(count * sizeof(float), static_cast<std::size_t>(numel(type))));
  };
  for (std::size_t i = 0; i < launch.operands.size(); ++i) {
    const Type& type = launch.operand_types[i];
    if (type.dtype == DType::bf16 || (is_conv && !launch.stacked[i])) add(type, launch.stacked[i]);
  }
  // What a kernel needs to add up the columns of b is less than b in f32.
  const GpuMatmul* const product = kernel.find<GpuMatmul>();
  if (product != nullptr && product->column_sums) add(launch.operand_types[1], true);
  for (const Type& type : launch.result_types) {
    if (type.dtype == DType::bf16 || is_kernel_grad) add(type, true);
  }
  return bytes;
}

// `gpu` is null if libraries plan nothing.
Workspace workspace_on(DescribedGpu* gpu, const std::vector<Plan>& plans, const MakeKernel& make_kernel) {
  Workspace most;
  if (gpu != nullptr) most.planned_for = gpu->properties.name;
  for (const Plan& plan : plans) {
    for_each_of<Launch>(plan.commands, [&](const Launch& launch, double) {
      const Op& op = launch.equation->op;
      const GpuRequest request = request_of(plan, launch);
      const GpuKernel kernel = make_kernel(op, request);
      most.scratch = std::max(most.scratch, kernel.scratch_bytes);
      if (!kernel.is_by_library()) return;
      most.bytes = std::max(most.bytes, gpu != nullptr ? gpu->kernels->prepare(op, request, kernel).workspace
                                                       : upper_bound_of(launch, kernel));
    });
  }
  return most;
}

}  // namespace

Workspace workspace_of(const std::vector<Plan>& plans, const MakeKernel& make_kernel, const OpenPlanningGpu& open_gpu) {
  if (open_gpu) {
    try {
      return workspace_on(&open_gpu(), plans, make_kernel);
    } catch (const Error&) {
      // If a library or its plan is missing, the upper bound holds. Kernels that cannot run at all fail on loading.
    }
  }
  return workspace_on(nullptr, plans, make_kernel);
}

}  // namespace pmaptrain::gpu
