#include "core/ops/support/gpu.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/saturate.h"
#include "core/kernel/gpu_budget.h"
#include "core/ops/attention/attention.h"

namespace pmaptrain::ops {
namespace {

// Which kernels are taken: those for any type and width (gpu.cuh), or those on tensor cores (tensor.cuh), which read 16
// bytes at once.
struct Kernels {
  bool on_tensor_cores;
  std::string_view suffix;  // of their names
  std::int64_t rows;        // the queries, or keys, that a block of threads has
  unsigned threads = gpu_threads;

  Kernels(DType dtype, std::int64_t width)
      : on_tensor_cores(dtype == DType::bf16 && width % 8 == 0 && width <= 128),
        suffix(on_tensor_cores ? (width <= 64 ? "w64" : "w128") : to_string(dtype)),
        rows(on_tensor_cores ? tensor_rows : 16),
        threads(on_tensor_cores ? tensor_threads : gpu_threads) {}

  std::int64_t blocks(std::int64_t all_rows) const { return (all_rows + rows - 1) / rows; }
  GpuLaunch launch(std::string_view base, std::string_view base_of_tiles, std::int64_t count,
                   std::vector<GpuArgument> arguments) const {
    GpuLaunch launch = launch_blocks(kernel_name(on_tensor_cores ? base_of_tiles : base, suffix), count, threads,
                                     std::move(arguments));
    launch.on_tensor_cores = on_tensor_cores;
    return launch;
  }
};

// The call of a library that takes the equation; nothing if our own kernels carry it out. A library takes bf16 without
// dropout and without a cotangent of lse, with as many heads of k and v as of q, whose rows it reads 16 bytes at once.
// Positions are multiples of the 128 that its blocks have: for others, versions of cuDNN up to 9.15 are given
// lengths that each run copies from the host, which a graph cannot replay. No operand is shared by several devices.
//
// Each call has as many examples as its workspace allows.
std::optional<GpuAttention> library_takes(const GpuRequest& request, GpuAttention::Kind kind, bool causal) {
  constexpr std::int64_t block = 128;
  const AttentionSizes sizes(request.operands[0].shape, request.operands[1].shape);
  const std::size_t operands = kind == GpuAttention::Kind::forward ? 3 : 6;
  const bool takes = request.operands.size() == operands && request.operands[0].dtype == DType::bf16 &&
                     sizes.heads == sizes.kv_heads && sizes.width % 8 == 0 && sizes.width <= 128 && sizes.queries > 0 &&
                     sizes.queries % block == 0 && sizes.keys % block == 0 &&
                     (request.devices == 1 ||
                      std::find(request.stacked.begin(), request.stacked.end(), false) == request.stacked.end());
  if (!takes) return std::nullopt;
  const std::int64_t examples = sizes.examples * request.devices;
  GpuAttention call{kind, 0, sizes.queries, sizes.keys, sizes.heads, sizes.width, causal, request.deterministic};
  for (call.calls = 1; call.calls <= examples; ++call.calls) {
    call.examples = examples / call.calls;
    if (examples % call.calls == 0 && attention_workspace(call) <= attention_budget) return call;
  }
  return std::nullopt;
}

// The kernel whose commands are our own launches, or the call of a library in their place.
GpuKernel by_library_or_own(const std::optional<GpuAttention>& call, std::vector<GpuLaunch> own,
                            std::size_t scratch_bytes) {
  GpuKernel kernel{{}, scratch_bytes, std::move(own)};
  if (!call) return kernel.without_library();
  kernel.commands = {*call};
  return kernel;
}

// The examples that an operand has.
GpuArgument examples_of(const GpuRequest& request, std::size_t operand) {
  return number(request.operands[operand].shape[0] * (request.stacked[operand] ? request.devices : 1));
}

// The number of rows of an operand [B,T,H] or [B,T,H,D].
GpuArgument rows_of(const GpuRequest& request, std::size_t operand) {
  const Shape& shape = request.operands[operand].shape;
  return number(shape[0] * shape[1] * shape[2] * (request.stacked[operand] ? request.devices : 1));
}

void add_sizes(std::vector<GpuArgument>& arguments, const AttentionSizes& sizes, DType dtype, std::int64_t devices,
               bool causal) {
  for (const std::int64_t value : {sizes.examples * devices, sizes.queries, sizes.keys, sizes.heads, sizes.kv_heads,
                                   sizes.width, std::int64_t{causal}}) {
    arguments.push_back(number(value));
  }
  // As the reference computes it.
  arguments.push_back(GpuArgument::of(dtype == DType::f64
                                          ? 1 / std::sqrt(static_cast<double>(sizes.width))
                                          : static_cast<double>(1 / std::sqrt(static_cast<float>(sizes.width)))));
}

// The operands of dropout, from `first` on. Where first is 0, a device draws for 0 examples.
void add_dropout(std::vector<GpuArgument>& arguments, const GpuRequest& request, std::size_t first) {
  for (std::size_t i = 0; i < 4; ++i) arguments.push_back(GpuArgument::operand(first == 0 ? 0 : first + i));
  arguments.push_back(number(first == 0 ? 0 : request.operands[0].shape[0]));
  for (std::size_t i = 0; i < 4; ++i) arguments.push_back(number(first == 0 ? 0 : device_stride(request, first + i)));
  const std::size_t offset = first + 4;
  const bool has_offset = first > 0 && offset < request.operands.size();
  arguments.push_back(GpuArgument::operand(has_offset ? offset : 0));
  arguments.push_back(number(has_offset ? static_cast<std::int64_t>(size_of(request.operands[offset].dtype)) : 0));
  arguments.push_back(number(has_offset ? device_stride(request, offset) : 0));
}

}  // namespace

GpuKernel Attention::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const AttentionSizes sizes(request.operands[0].shape, request.operands[1].shape);
  const DType dtype = request.operands[0].dtype;
  const Kernels kernels(dtype, sizes.width);
  const std::int64_t count = request.devices * sizes.examples * sizes.heads * kernels.blocks(sizes.queries);
  std::vector<GpuArgument> arguments{GpuArgument::result(0),  GpuArgument::result(1),  GpuArgument::operand(0),
                                     GpuArgument::operand(1), GpuArgument::operand(2), number(count)};
  for (std::size_t operand = 0; operand < 3; ++operand) arguments.push_back(examples_of(request, operand));
  add_sizes(arguments, sizes, dtype, request.devices, causal);
  add_dropout(arguments, request, dropout_of(request.operands.size()));
  return by_library_or_own(library_takes(request, GpuAttention::Kind::forward, causal),
                           {kernels.launch("attention", "attention_tiles", count, std::move(arguments))}, 0);
}

// Our own kernels are three launches: delta into scratch memory, dq by blocks of queries, dk and dv by blocks of keys.
GpuKernel AttentionGrad::gpu(const GpuRequest& request) const {
  if (has_no_results(request)) return {};
  const AttentionSizes sizes(request.operands[0].shape, request.operands[1].shape);
  const DType dtype = request.operands[0].dtype;
  const std::int64_t examples = request.devices * sizes.examples;
  const std::int64_t rows = examples * sizes.queries * sizes.heads;
  const Kernels kernels(dtype, sizes.width);
  std::vector<GpuLaunch> launches;
  const bool dlse = has_dlse(request.operands.size());
  if (rows > 0) {
    launches.push_back(
        launch_elements(kernel_name("attention_delta", dtype), rows,
                        {GpuArgument::scratch(), GpuArgument::operand(3), GpuArgument::operand(5),
                         GpuArgument::operand(dlse ? 6 : 4), number(rows), rows_of(request, 3), rows_of(request, 5),
                         dlse ? rows_of(request, 6) : number(0), number(sizes.width)}));
  }
  static constexpr std::size_t read[] = {0, 1, 2, 4, 5};  // all but out, which delta replaces
  const auto add = [&](std::string_view base, std::string_view base_of_tiles,
                       std::initializer_list<std::size_t> results, std::int64_t count) {
    if (count == 0) return;
    std::vector<GpuArgument> arguments;
    for (const std::size_t result : results) arguments.push_back(GpuArgument::result(result));
    for (const std::size_t operand : read) arguments.push_back(GpuArgument::operand(operand));
    arguments.push_back(GpuArgument::scratch());
    arguments.push_back(number(count));
    for (const std::size_t operand : read) arguments.push_back(examples_of(request, operand));
    add_sizes(arguments, sizes, dtype, request.devices, causal);
    add_dropout(arguments, request, dropout_of(request.operands.size()));
    launches.push_back(kernels.launch(base, base_of_tiles, count, std::move(arguments)));
  };
  add("attention_grad_q", "attention_grad_q_tiles", {0}, examples * sizes.heads * kernels.blocks(sizes.queries));
  add("attention_grad_kv", "attention_grad_kv_tiles", {1, 2}, examples * sizes.kv_heads * kernels.blocks(sizes.keys));
  return by_library_or_own(
      library_takes(request, GpuAttention::Kind::gradient, causal), std::move(launches),
      product_of(static_cast<std::size_t>(rows), size_of(dtype == DType::f64 ? DType::f64 : DType::f32)));
}

}  // namespace pmaptrain::ops
