#include "core/ops/matmul/batch.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/matmul/product.h"

namespace pmaptrain::ops {

// As few calls as there can be. Where all devices multiply the same second matrix, their rows are those of one product.
GpuMatmul GpuProduct::by_library(const GpuRequest& request) const {
  GpuMatmul call{m, n, k, transpose_a, transpose_b, relu};
  call.operands = request.operands[0].dtype;
  call.result = request.results[0].dtype;
  if (request.operands.size() == 3) call.bias = request.operands[2].dtype;
  const bool a_stacked = request.stacked[0], b_stacked = request.stacked[1];
  const bool bias_stacked = call.bias && request.stacked[2];
  call.a_stride = m * k;
  call.b_stride = k * n;
  if (matrices > 1) {
    call.batch = matrices;
    (a_stacked && b_stacked ? call.batch : call.calls) *= request.devices;
  } else if (a_stacked && !b_stacked && !bias_stacked && !transpose_a) {
    call.m *= request.devices;
  } else {
    call.batch = request.devices;
    if (!a_stacked) call.a_stride = 0;
    if (!b_stacked) call.b_stride = 0;
    if (bias_stacked) call.bias_stride = n;
  }
  return call;
}

// One launch where every device's operands follow those of the device before, or are the same for all; else one for
// each device.
GpuKernel GpuProduct::launch(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const Type& result = request.results[0];
  const DType dtype = request.operands[0].dtype;
  const bool widens = dtype == DType::bf16 && result.dtype == DType::f32;
  const auto name = widens ? kernel_name("product", "bf16_to_f32") : kernel_name("product", dtype);
  const bool biased = request.operands.size() == 3;
  const bool together = matrices == 1 || (request.stacked[0] && request.stacked[1]);
  const std::int64_t runs = together ? 1 : request.devices, batch = together ? request.devices * matrices : matrices;
  const std::int64_t count = batch * m * n;
  const auto next = [&](std::size_t i, std::int64_t size) { return request.stacked[i] || matrices > 1 ? size : 0; };
  GpuKernel kernel;
  for (std::int64_t run = 0; run < runs; ++run) {
    const auto place = [&](std::size_t i) {
      const auto elements = static_cast<std::size_t>(run * device_stride(request, i));
      return GpuArgument::operand(i, elements * size_of(request.operands[i].dtype));
    };
    const auto to = GpuArgument::result(0, static_cast<std::size_t>(run * numel(result)) * size_of(result.dtype));
    kernel.commands.push_back(
        launch_elements(name, count,
                        {to, place(0), place(1), place(biased ? 2 : 1), number(count), number(m), number(n), number(k),
                         number(transpose_a ? 1 : k), number(transpose_a ? m : 1), number(next(0, m * k)),
                         number(transpose_b ? 1 : n), number(transpose_b ? k : 1), number(next(1, k * n)),
                         number(biased ? 1 : 0), number(biased && request.operands[2].dtype == DType::f32 ? 1 : 0),
                         number(biased ? device_stride(request, 2) : 0), number(relu ? 1 : 0)}));
  }
  return kernel;
}

GpuKernel Matmul::gpu(const GpuRequest& given) const {
  const MatmulTypes matrices = as_matrices(*this, given.operands, given.results);
  const GpuRequest request = request_for(matrices, given);
  const Type& a = request.operands[0];
  const Shape& y = request.results[0].shape;
  const GpuProduct product{1, y[0], y[1], a.shape[transpose_a ? 0 : 1], transpose_a, transpose_b, relu};
  return in_libraries(a.dtype) && product.k > 0 ? one_command(request, product.by_library(request))
                                                : product.launch(request);
}

GpuKernel BatchMatmul::gpu(const GpuRequest& request) const {
  const Type& a = request.operands[0];
  const Shape& y = request.results[0].shape;
  const std::size_t rank = y.size();
  const std::int64_t k = a.shape[rank - (transpose_a ? 2 : 1)];
  const std::int64_t matrices = numel(Shape(y.begin(), y.end() - 2));
  const GpuProduct product{matrices, y[rank - 2], y[rank - 1], k, transpose_a, transpose_b};
  const bool is_for_library = in_libraries(a.dtype) && k > 0 && matrices > 0;
  return is_for_library ? one_command(request, product.by_library(request)) : product.launch(request);
}

}  // namespace pmaptrain::ops
