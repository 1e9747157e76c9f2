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
  for (const Type& type : launch.result_types) {
    if (type.dtype == DType::bf16 || is_kernel_grad) add(type, true);
  }
  return bytes;
}

// The maximum of f(launch, op, request, kernel) over the launches whose kernels call a library.
template <class F>
std::size_t largest(const std::vector<Plan>& plans, const MakeKernel& make_kernel, F&& f) {
  std::size_t most = 0;
  for (const Plan& plan : plans) {
    for_each_command(plan.commands, [&](const Command& command) {
      const Launch* const launch = std::get_if<Launch>(&command);
      if (launch == nullptr) return;
      const Op& op = launch->equation->op;
      const GpuRequest request = request_of(plan, *launch);
      const GpuKernel kernel = make_kernel(op, request);
      if (kernel.is_by_library()) most = std::max(most, f(*launch, op, request, kernel));
    });
  }
  return most;
}

Workspace planned_on(Platform& platform, const std::vector<Plan>& plans, const MakeKernel& make_kernel) {
  const std::unique_ptr<Device> device = platform.open(0);
  const std::size_t bytes =
      largest(plans, make_kernel, [&](const Launch&, const Op& op, const GpuRequest& request, const GpuKernel& kernel) {
        return device->prepare(op, request, kernel).workspace;
      });
  return {bytes, platform.properties(0).name};
}

}  // namespace

Workspace workspace_of(const std::vector<Plan>& plans, const MakeKernel& make_kernel,
                       const OpenPlanningPlatform& open_platform) {
  if (open_platform) {
    try {
      return planned_on(open_platform(), plans, make_kernel);
    } catch (const Error&) {
      // If a library or its plan is missing, the upper bound holds. Kernels that cannot run at all fail on loading.
    }
  }
  const std::size_t bytes =
      largest(plans, make_kernel, [](const Launch& launch, const Op&, const GpuRequest&, const GpuKernel& kernel) {
        return upper_bound_of(launch, kernel);
      });
  return {bytes, {}};
}

}  // namespace pmaptrain::gpu
