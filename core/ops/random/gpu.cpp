#include "core/ops/support/gpu.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/ops/random/part.h"
#include "core/ops/random/random.h"

namespace pmaptrain::ops {
namespace {

// The stream of the words of all elements, or rows, of the request.
std::vector<GpuArgument> stream_of(const GpuRequest& request, std::int64_t count) {
  return {GpuArgument::result(0),
          GpuArgument::operand(0),
          GpuArgument::operand(1),
          number(numel(request.operands[1])),
          number(device_stride(request, 0)),
          number(device_stride(request, 1)),
          number(count)};
}

// A launch that computes all elements of rows or of parts of rows. `more` are further arguments.
template <class Op>
GpuKernel elements_kernel(std::string_view name, const Op& op, const GpuRequest& request,
                          std::initializer_list<GpuArgument> more = {}) {
  if (has_no_results(request)) return {};
  const std::int64_t count = request.devices * numel(request.results[0]);
  std::vector<GpuArgument> arguments = stream_of(request, count);
  arguments.push_back(number(numel(op.shape)));
  const bool is_part = request.operands.size() > 2;
  if (is_part) {
    RowPart part(op.shape, op.strides);
    arguments.insert(arguments.end(), {GpuArgument::operand(2), number(request.operands[2].dtype == DType::i64 ? 1 : 0),
                                       number(device_stride(request, 2))});
    for (const auto& [dims, missing] : {std::pair(&part.sizes, 1), std::pair(&part.strides, 0)}) {
      std::reverse(dims->values.begin(), dims->values.begin() + static_cast<std::ptrdiff_t>(dims->rank));
      while (dims->rank < max_rank) dims->push(missing);
      for (const std::int64_t value : dims->values) arguments.push_back(number(value));
    }
  }
  arguments.insert(arguments.end(), more);
  const std::string suffix = std::string(name) + (is_part ? "_part" : "");
  return {{launch_elements(kernel_name("random", suffix), count, std::move(arguments))}};
}

}  // namespace

GpuKernel RandomUniform::gpu(const GpuRequest& request) const { return elements_kernel("uniform", *this, request); }

GpuKernel RandomNormal::gpu(const GpuRequest& request) const { return elements_kernel("normal", *this, request); }

GpuKernel RandomBernoulli::gpu(const GpuRequest& request) const {
  return elements_kernel("bernoulli", *this, request, {GpuArgument::of(probability)});
}

GpuKernel RandomPermutation::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const std::int64_t rows = request.devices * numel(request.results[0]) / size;
  std::vector<GpuArgument> arguments = stream_of(request, rows);
  arguments.push_back(number(size));
  return {{launch_elements(kernel_name("random", "permutation"), rows, std::move(arguments))}};
}

}  // namespace pmaptrain::ops
