#include "core/ops/support/gpu.h"

#include "core/ops/random/random.h"

namespace pmaptrain::ops {
namespace {

// A launch that computes the words of all elements, or rows, of the request. `more` are further arguments.
GpuKernel random_kernel(std::string_view name, const GpuRequest& request, std::int64_t count,
                        std::initializer_list<GpuArgument> more) {
  std::vector<GpuArgument> arguments{GpuArgument::result(0),
                                     GpuArgument::operand(0),
                                     GpuArgument::operand(1),
                                     number(numel(request.operands[1])),
                                     number(device_stride(request, 0)),
                                     number(device_stride(request, 1)),
                                     number(count)};
  arguments.insert(arguments.end(), more);
  return {{launch_elements(kernel_name("random", name), count, std::move(arguments))}};
}

std::int64_t elements_of(const GpuRequest& request) { return request.devices * numel(request.results[0]); }

}  // namespace

GpuKernel RandomUniform::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  return random_kernel("uniform", request, elements_of(request), {number(numel(shape))});
}

GpuKernel RandomNormal::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  return random_kernel("normal", request, elements_of(request), {number(numel(shape))});
}

GpuKernel RandomBernoulli::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  return random_kernel("bernoulli", request, elements_of(request),
                       {number(numel(shape)), GpuArgument::of(probability)});
}

GpuKernel RandomPermutation::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  return random_kernel("permutation", request, elements_of(request) / size, {number(size)});
}

}  // namespace pmaptrain::ops
