#include "core/ops/support/gpu.h"

#include <string>
#include <utility>

#include "core/ops/reduce/groups.h"
#include "core/ops/reduce/loops.h"
#include "core/ops/reduce/reduce.h"

namespace pmaptrain::ops {
namespace {

constexpr auto reduce_lanes = static_cast<std::int64_t>(wide_group);
constexpr auto block_rows = static_cast<std::int64_t>(reduce_block);

// A thread reduces this many rows in about the time that a second launch takes.
constexpr std::int64_t short_columns = 256;
static_assert(short_columns <= block_rows);

// Appends sizes and strides, innermost first, padded to the rank of a Walk in gpu.cuh.
void add_walk(std::vector<GpuArgument>& arguments, const Dims& sizes, const Dims& strides, std::size_t rank) {
  for (std::size_t i = 0; i < rank; ++i) arguments.push_back(number(i < sizes.rank ? sizes[sizes.rank - 1 - i] : 1));
  for (std::size_t i = 0; i < rank; ++i) {
    arguments.push_back(number(i < strides.rank ? strides[strides.rank - 1 - i] : 0));
  }
}

// The launches of a reduction, "sum" or "max".
class ReductionKernel {
 public:
  ReductionKernel(std::string base, const GpuRequest& request, std::span<const std::int64_t> dims)
      : base_(std::move(base)), request_(request), g_(reduce_groups(request.operands[0].shape, dims)) {}

  GpuKernel make() && {
    (g_.columns == 1) ? reduce_rows() : reduce_columns();
    return std::move(kernel_);
  }

 private:
  void reduce_rows() {
    const std::int64_t chunks = divided_up(g_.rows / reduce_lanes, block_rows), parts = outputs() * reduced() * chunks;
    if (chunks == 1 && reduced() == 1) {
      kernel_.commands.push_back(
          launch_blocks(final_name("_short_rows"), outputs(), wide_group,
                        with_source({GpuArgument::result(0), GpuArgument::operand(0), number(outputs())})));
      return;
    }
    if (chunks > 0) {
      make_room(parts);
      kernel_.commands.push_back(
          launch_blocks(kernel_name(base_ + "_row_parts", dtype()), parts, wide_group,
                        with_source({GpuArgument::scratch(), GpuArgument::operand(0), number(parts), number(chunks)})));
    }
    kernel_.commands.push_back(
        launch_elements(final_name("_rows"), outputs(),
                        with_source({GpuArgument::result(0), GpuArgument::operand(0), GpuArgument::scratch(),
                                     number(outputs()), number(chunks)})));
  }

  void reduce_columns() {
    const ColumnOrder order = column_order(g_.rows, g_.columns);
    const std::int64_t count = outputs() * g_.columns;
    if (g_.rows <= short_columns && reduced() == 1) {
      kernel_.commands.push_back(
          launch_elements(final_name("_short_columns"), count,
                          with_source({GpuArgument::result(0), GpuArgument::operand(0), number(count),
                                       number(order.wide_rows()), number(g_.columns), number(order.group)})));
      return;
    }
    const std::int64_t parts = outputs() * reduced() * order.parts();
    make_room(parts);
    kernel_.commands.push_back(launch_blocks(kernel_name(base_ + "_column_parts", dtype()),
                                             divided_up(parts, part_lanes), part_threads,
                                             with_source({GpuArgument::scratch(), GpuArgument::operand(0),
                                                          number(parts), number(g_.columns), number(order.group)})));
    kernel_.commands.push_back(launch_blocks(
        kernel_name(base_ + "_columns", request_.results[0].dtype), divided_up(count, part_lanes), part_threads,
        {GpuArgument::result(0), GpuArgument::scratch(), number(count), number(g_.rows), number(g_.columns),
         number(order.group), number(reduced())}));
  }

  DType dtype() const { return request_.operands[0].dtype; }
  // The number of results, or rows of results, of all devices.
  std::int64_t outputs() const {
    std::int64_t count = request_.devices;
    for (const std::int64_t size : g_.kept_sizes.span()) count *= size;
    return count;
  }
  std::int64_t reduced() const {
    std::int64_t count = 1;
    for (const std::int64_t size : g_.reduced_sizes.span()) count *= size;
    return count;
  }

  // Parts have the type in which elements are computed.
  void make_room(std::int64_t parts) {
    kernel_.scratch_bytes =
        static_cast<std::size_t>(parts) * (dtype() == DType::bf16 ? sizeof(float) : size_of(dtype()));
  }

  std::string_view final_name(const char* step) const {
    const bool widens = dtype() == DType::bf16 && request_.results[0].dtype == DType::f32;
    return widens ? kernel_name(base_ + step, "bf16_to_f32") : kernel_name(base_ + step, dtype());
  }

  std::vector<GpuArgument> with_source(std::vector<GpuArgument> arguments) const {
    Dims sizes, strides;
    sizes.rank = strides.rank = g_.kept_sizes.rank + 1;
    sizes[0] = request_.devices;
    strides[0] = device_stride(request_, 0);
    for (std::size_t i = 0; i < g_.kept_sizes.rank; ++i) {
      sizes[i + 1] = g_.kept_sizes[i];
      strides[i + 1] = g_.kept_strides[i];
    }
    arguments.push_back(number(g_.rows));
    add_walk(arguments, sizes, strides, 5);
    arguments.push_back(number(reduced()));
    add_walk(arguments, g_.reduced_sizes, g_.reduced_strides, 3);
    return arguments;
  }

  const std::string base_;
  const GpuRequest& request_;
  const ReduceGroups g_;
  GpuKernel kernel_;
};

GpuKernel reduce_kernel(std::string base, const GpuRequest& request, std::span<const std::int64_t> dims) {
  if (has_no_results(request)) return {};
  if (numel(request.operands[0]) == 0) return zeros_kernel(request);
  return ReductionKernel(std::move(base), request, dims).make();
}

}  // namespace

GpuKernel ReduceSum::gpu(const GpuRequest& request) const { return reduce_kernel("sum", request, dims); }
GpuKernel ReduceMax::gpu(const GpuRequest& request) const { return reduce_kernel("max", request, dims); }

}  // namespace pmaptrain::ops
