#include "core/ops/support/gpu.h"

#include <utility>

#include "core/base/saturate.h"
#include "core/ops/recurrent/cell.h"
#include "core/ops/recurrent/recurrent.h"

namespace pmaptrain::ops {
namespace {

// How the GPU goes through positions: the product of the states of the position before with a matrix, by a library,
// then a launch for the cells of all examples.
struct Recurrence {
  std::string_view kernel;  // of a cell
  RecurrentSizes sizes;
  bool reverse = false, is_gradient = false;
  std::size_t matrix = 0, states = 0;      // the operand and the result that are multiplied
  std::int64_t columns = 1, products = 1;  // for each feature, of the states and of their product
  std::vector<std::size_t> operands = {};  // of the cell
};

DType computed_in(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

// As few products as there can be: one, if all devices have one matrix.
GpuMatmul product_at(const GpuRequest& request, const Recurrence& of, std::int64_t position) {
  const RecurrentSizes& sizes = of.sizes;
  const bool apart = request.stacked[of.matrix];
  const DType dtype = request.results[of.states].dtype;
  GpuMatmul product{sizes.examples * (apart ? 1 : request.devices), of.products * sizes.features,
                    of.columns * sizes.features};
  product.operands = dtype;
  product.result = computed_in(dtype);
  product.batch = apart ? request.devices : 1;
  const std::int64_t row = sizes.positions * product.k;
  product.a_stride = sizes.examples * row;
  product.b_stride = apart ? product.k * product.n : 0;
  const auto begin = static_cast<std::size_t>(position * product.k) * size_of(dtype);
  product.places = {GpuArgument::result(of.states, begin), GpuArgument::operand(of.matrix), GpuArgument::scratch(),
                    row};
  return product;
}

// The kernel's parameters are results, operands, scratch memory, sizes, positions, and the strides of operands. Of
// scratch memory, an example has the product, then what the next position takes: one element for each feature.
GpuLaunch cells_at(const GpuRequest& request, const Recurrence& of, std::int64_t position, std::int64_t before,
                   bool is_multiplied) {
  const RecurrentSizes& sizes = of.sizes;
  const std::int64_t count = request.devices * sizes.examples * sizes.features;
  std::vector<GpuArgument> arguments;
  for (std::size_t i = 0; i < request.results.size(); ++i) arguments.push_back(GpuArgument::result(i));
  for (const std::size_t i : of.operands) arguments.push_back(GpuArgument::operand(i));
  arguments.push_back(GpuArgument::scratch());
  for (const std::int64_t value :
       {count, sizes.examples, sizes.positions, sizes.features, position, before, std::int64_t{is_multiplied}}) {
    arguments.push_back(number(value));
  }
  for (const std::size_t i : of.operands) arguments.push_back(number(device_stride(request, i)));
  return launch_elements(kernel_name(of.kernel, request.results[0].dtype), count, std::move(arguments));
}

GpuKernel kernel_of(const GpuRequest& request, const Recurrence& of) {
  GpuKernel kernel;
  if (has_no_results(request)) return kernel;
  const RecurrentSizes& sizes = of.sizes;
  const Steps steps{sizes.positions, of.reverse};
  for (std::int64_t i = 0; i < sizes.positions; ++i) {
    const std::int64_t step = of.is_gradient ? sizes.positions - 1 - i : i;
    if (i > 0) kernel.commands.emplace_back(product_at(request, of, steps.at(of.is_gradient ? step + 1 : step - 1)));
    const std::int64_t before = step == 0 ? -1 : steps.at(step - 1);
    kernel.commands.emplace_back(cells_at(request, of, steps.at(step), before, i > 0));
  }
  const std::int64_t elements = request.devices * sizes.examples * sizes.features * (of.products + 1);
  kernel.scratch_bytes = product_of(static_cast<std::size_t>(elements), size_of(computed_in(request.results[0].dtype)));
  return kernel;
}

}  // namespace

GpuKernel Lstm::gpu(const GpuRequest& request) const {
  return kernel_of(request, {.kernel = name,
                             .sizes = {request.operands[0].shape, gates},
                             .reverse = reverse,
                             .matrix = 1,
                             .products = gates,
                             .operands = {0}});
}

GpuKernel LstmGrad::gpu(const GpuRequest& request) const {
  return kernel_of(request, {.kernel = name,
                             .sizes = {request.operands[1].shape, 1},
                             .reverse = reverse,
                             .is_gradient = true,
                             .columns = Lstm::gates,
                             .operands = {1, 2, 3}});
}

GpuKernel Gru::gpu(const GpuRequest& request) const {
  return kernel_of(request, {.kernel = name,
                             .sizes = {request.operands[0].shape, gates},
                             .reverse = reverse,
                             .matrix = 1,
                             .products = gates,
                             .operands = {0, 2}});
}

GpuKernel GruGrad::gpu(const GpuRequest& request) const {
  return kernel_of(request, {.kernel = name,
                             .sizes = {request.operands[1].shape, 1},
                             .reverse = reverse,
                             .is_gradient = true,
                             .states = 1,
                             .columns = Gru::gates,
                             .operands = {1, 2, 3}});
}

}  // namespace pmaptrain::ops
