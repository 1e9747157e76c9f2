#include "core/ops/support/gpu.h"

#include <cstring>

#include "core/ops/constant/constant.h"

namespace pmaptrain::ops {

// A splat is a fill; `values` are part of generated code.
GpuKernel Constant::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  if (!splat()) return generated_kernel(request);
  const Type one{dtype, {}, {}};
  std::uint64_t bits = 0;
  const Array element{&one, reinterpret_cast<std::byte*>(&bits)};
  Constant{dtype, {}, value}.reference({{}, {&element, 1}});
  return {{launch_fill(dtype, GpuArgument::result(0), request.devices * numel(request.results[0]), bits)}};
}

}  // namespace pmaptrain::ops
