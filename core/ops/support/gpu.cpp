#include "core/ops/support/gpu.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace pmaptrain::ops {
namespace {

constexpr std::array kernel_names = {
#define PMAPTRAIN_NAME(base, suffix) std::string_view(#base "_" #suffix),
    PMAPTRAIN_GPU_KERNELS(PMAPTRAIN_NAME)
#undef PMAPTRAIN_NAME
};

constexpr std::int64_t most_blocks = std::int64_t{1} << 16;

// Leaves out dimensions of one element, and joins those that follow each other on both sides.
std::vector<CopyDim> joined(const std::vector<CopyDim>& dims) {
  std::vector<CopyDim> result;
  for (const CopyDim& dim : dims) {
    if (dim.size == 1) continue;
    if (!result.empty() && result.back().to == dim.size * dim.to && result.back().from == dim.size * dim.from) {
      result.back() = {result.back().size * dim.size, dim.to, dim.from};
    } else {
      result.push_back(dim);
    }
  }
  return result;
}

}  // namespace

GpuKernel generated_kernel(const GpuRequest& request) { return one_command(request, GpuGenerated{}); }

GpuKernel one_command(const GpuRequest& request, GpuCommand command) {
  GpuKernel kernel;
  if (!has_no_results(request)) kernel.commands.push_back(std::move(command));
  return kernel;
}

bool has_no_results(const GpuRequest& request) {
  return std::all_of(request.results.begin(), request.results.end(), [](const Type& type) { return numel(type) == 0; });
}

std::int64_t device_stride(const GpuRequest& request, std::size_t operand) {
  return request.stacked[operand] ? numel(request.operands[operand]) : 0;
}

std::string_view kernel_name(std::string_view base, std::string_view suffix) {
  const auto is_it = [&](std::string_view name) {
    return name.size() == base.size() + 1 + suffix.size() && name.starts_with(base) && name[base.size()] == '_' &&
           name.ends_with(suffix);
  };
  const auto found = std::find_if(kernel_names.begin(), kernel_names.end(), is_it);
  if (found == kernel_names.end()) {
    throw std::logic_error("core/ops/gpu_kernels.h has no kernel " + std::string(base) + "_" + std::string(suffix));
  }
  return *found;
}

std::string_view kernel_name(std::string_view base, DType dtype) { return kernel_name(base, to_string(dtype)); }

std::string_view word_name(std::string_view base, DType dtype) {
  switch (size_of(dtype)) {
    case 1: return kernel_name(base, "b1");
    case 2: return kernel_name(base, "b2");
    case 4: return kernel_name(base, "b4");
    default: return kernel_name(base, "b8");
  }
}

GpuLaunch launch_elements(std::string_view kernel, std::int64_t count, std::vector<GpuArgument> arguments) {
  return launch_blocks(kernel, (count + gpu_threads - 1) / gpu_threads, gpu_threads, std::move(arguments));
}

GpuLaunch launch_blocks(std::string_view kernel, std::int64_t count, unsigned threads,
                        std::vector<GpuArgument> arguments) {
  assert(count > 0);
  return {kernel, {static_cast<unsigned>(std::min(count, most_blocks)), 1, 1}, threads, std::move(arguments)};
}

GpuLaunch launch_copy(DType dtype, GpuArgument to, GpuArgument from, std::vector<CopyDim> dims) {
  std::int64_t count = 1;
  for (const CopyDim& dim : dims) count *= dim.size;
  dims = joined(dims);
  assert(dims.size() <= copy_dims);
  std::reverse(dims.begin(), dims.end());
  dims.resize(copy_dims);
  std::vector<GpuArgument> arguments{to, from, number(count)};
  for (const CopyDim& dim : dims) arguments.push_back(number(dim.size));
  for (const CopyDim& dim : dims) arguments.push_back(number(dim.to));
  for (const CopyDim& dim : dims) arguments.push_back(number(dim.from));
  return launch_elements(word_name("copy", dtype), count, std::move(arguments));
}

GpuLaunch launch_zeros(DType dtype, GpuArgument to, std::int64_t count) { return launch_fill(dtype, to, count, 0); }

GpuLaunch launch_fill(DType dtype, GpuArgument to, std::int64_t count, std::uint64_t bits) {
  return launch_elements(word_name("fill", dtype), count, {to, number(count), GpuArgument::of(bits)});
}

GpuLaunch launch_box(const GpuRequest& request, std::span<const std::int64_t> sizes, Side to, Side from) {
  const DType dtype = request.results[0].dtype;
  const auto bytes_to = [&](std::int64_t elements) { return static_cast<std::size_t>(elements) * size_of(dtype); };
  std::vector<CopyDim> dims{{request.devices, numel(request.results[0]), device_stride(request, 0)}};
  for (std::size_t d = 0; d < sizes.size(); ++d) dims.push_back({sizes[d], to.strides[d], from.strides[d]});
  return launch_copy(dtype, GpuArgument::result(0, bytes_to(to.offset)), GpuArgument::operand(0, bytes_to(from.offset)),
                     std::move(dims));
}

GpuKernel zeros_kernel(const GpuRequest& request) {
  GpuKernel kernel;
  for (std::size_t i = 0; i < request.results.size(); ++i) {
    const std::int64_t count = request.devices * numel(request.results[i]);
    if (count > 0) kernel.commands.push_back(launch_zeros(request.results[i].dtype, GpuArgument::result(i), count));
  }
  return kernel;
}

}  // namespace pmaptrain::ops
