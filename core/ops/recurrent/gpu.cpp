#include "core/ops/support/gpu.h"

#include <utility>

#include "core/base/saturate.h"
#include "core/ops/recurrent/recurrent.h"

namespace pmaptrain::ops {
namespace {

// A launch with a block of threads for each example: results, operands, `elements` of scratch memory for each feature
// of an example, sizes, and the strides of operands.
GpuKernel launch_examples(const GpuRequest& request, std::string_view kernel, const RecurrentSizes& sizes, bool reverse,
                          std::int64_t elements) {
  if (has_no_results(request)) return {};
  const DType dtype = request.results[0].dtype;
  const std::int64_t count = request.devices * sizes.examples;
  std::vector<GpuArgument> arguments;
  for (std::size_t i = 0; i < request.results.size(); ++i) arguments.push_back(GpuArgument::result(i));
  for (std::size_t i = 0; i < request.operands.size(); ++i) arguments.push_back(GpuArgument::operand(i));
  arguments.push_back(GpuArgument::scratch());
  for (const std::int64_t value : {count, sizes.examples, sizes.positions, sizes.features, std::int64_t{reverse}}) {
    arguments.push_back(number(value));
  }
  for (std::size_t i = 0; i < request.operands.size(); ++i) arguments.push_back(number(device_stride(request, i)));
  return {{launch_blocks(kernel_name(kernel, dtype), count, gpu_threads, std::move(arguments))},
          product_of(static_cast<std::size_t>(count * elements * sizes.features),
                     size_of(dtype == DType::f64 ? DType::f64 : DType::f32))};
}

}  // namespace

GpuKernel Lstm::gpu(const GpuRequest& request) const {
  return launch_examples(request, name, {request.operands[0].shape, gates}, reverse, 3);
}

GpuKernel LstmGrad::gpu(const GpuRequest& request) const {
  return launch_examples(request, name, {request.operands[1].shape, 1}, reverse, 2 * Lstm::gates + 1);
}

GpuKernel Gru::gpu(const GpuRequest& request) const {
  return launch_examples(request, name, {request.operands[0].shape, gates}, reverse, 2);
}

GpuKernel GruGrad::gpu(const GpuRequest& request) const {
  return launch_examples(request, name, {request.operands[1].shape, 1}, reverse, 2 * Gru::gates + 1);
}

}  // namespace pmaptrain::ops
