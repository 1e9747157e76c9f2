#include "core/ops/support/gpu.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/saturate.h"
#include "core/ops/scatter_add/scatter_add.h"

namespace pmaptrain::ops {
namespace {

struct Sizes {
  std::int64_t devices, rows, width, updates;
  bool wide_indices;
};

// Each block of threads looks through all indices: one launch, for few updates or few rows.
GpuKernel by_search(const GpuRequest& request, const Sizes& s) {
  const std::int64_t count = s.devices * divided_up(s.rows * s.width, gpu_threads);
  return {{launch_blocks(kernel_name("scatter_add", request.results[0].dtype), count, gpu_threads,
                         {GpuArgument::result(0), GpuArgument::operand(0), GpuArgument::operand(1),
                          number(s.wide_indices ? 1 : 0), number(count), number(s.rows), number(s.width),
                          number(s.updates), number(device_stride(request, 0)), number(device_stride(request, 1))})}};
}

// Sorts the updates by row, then adds (sorted.cuh).
GpuKernel by_sort(const GpuRequest& request, const Sizes& s) {
  const DType dtype = request.results[0].dtype;
  const std::int64_t all = s.devices * s.updates, tiles = divided_up(s.updates, sort_tile);
  GpuKernel kernel;
  const auto room = [&](std::int64_t words) {
    return GpuArgument::scratch(
        std::exchange(kernel.scratch_bytes, sum_of(kernel.scratch_bytes, static_cast<std::size_t>(words) * 4)));
  };
  GpuArgument row = room(all), update = room(all), next_row = room(all), next_update = room(all);
  const GpuArgument counts = room(s.devices * gpu_threads * tiles);
  const auto add = [&](GpuLaunch launch) { kernel.commands.emplace_back(std::move(launch)); };
  add(launch_zeros(dtype, GpuArgument::result(0), s.devices * s.rows * s.width));
  add(launch_elements(kernel_name("sort_begin", "u32"), all,
                      {row, update, GpuArgument::operand(0), number(s.wide_indices ? 1 : 0), number(all),
                       number(s.rows), number(s.updates), number(device_stride(request, 0))}));
  const auto bits = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(s.rows)));
  for (std::int64_t shift = 0; shift < bits; shift += 8) {
    const std::int64_t blocks = s.devices * tiles;
    add(launch_blocks(kernel_name("sort_count", "u32"), blocks, gpu_threads,
                      {counts, row, number(blocks), number(tiles), number(s.updates), number(shift)}));
    add(launch_blocks(kernel_name("sort_places", "u32"), s.devices, gpu_threads,
                      {counts, number(s.devices), number(tiles)}));
    add(launch_blocks(
        kernel_name("sort_move", "u32"), blocks, gpu_threads,
        {next_row, next_update, counts, row, update, number(blocks), number(tiles), number(s.updates), number(shift)}));
    std::swap(row, next_row);
    std::swap(update, next_update);
  }
  const std::int64_t count = all * divided_up(s.width, gpu_threads);
  add(launch_blocks(kernel_name("scatter_add_sorted", dtype), count, gpu_threads,
                    {GpuArgument::result(0), GpuArgument::operand(1), row, update, number(count), number(s.rows),
                     number(s.width), number(s.updates), number(device_stride(request, 1))}));
  return kernel;
}

}  // namespace

GpuKernel ScatterAdd::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const Type& indices = request.operands[0];
  const Sizes sizes{request.devices, rows, numel(request.results[0]) / rows, numel(indices),
                    indices.dtype == DType::i64};
  // A search reads every index for each 256 elements of the table; a sort takes some launches more. Rows and updates
  // are sorted as words of 32 bits.
  constexpr std::int64_t least_reads = std::int64_t{1} << 22, most = (std::int64_t{1} << 32) - 1;
  const bool is_long =
      divided_up(rows * sizes.width, gpu_threads) >= divided_up(least_reads, std::max<std::int64_t>(1, sizes.updates));
  return is_long && sizes.updates > 0 && rows < most && sizes.updates < most ? by_sort(request, sizes)
                                                                             : by_search(request, sizes);
}

}  // namespace pmaptrain::ops
