#include "tests/emulated_gpu/library.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/bf16.h"
#include "core/base/error.h"
#include "core/ops/all.h"
#include "core/ops/attention/attention.h"
#include "core/ops/collective/collective.h"
#include "core/ops/conv/conv.h"
#include "core/ops/matmul/kernel_grad.h"
#include "core/ops/matmul/matmul.h"
#include "tests/emulated_gpu/memory.h"

namespace pmaptrain::emulation {
namespace {

// What one call of a library computes: an op, `batch` times. An operand that is not stacked is the same each time.
struct LibraryCall {
  Op op;
  std::vector<Type> operands, results;
  std::int64_t batch = 1;
  std::vector<bool> stacked = {};
};

RunCommand run_calls(const LibraryCall& call, std::int64_t calls, const GpuRequest& request) {
  const std::shared_ptr<CpuKernel> kernel = make_reference_kernel(
      call.op.shared(), kernels_of(call.op).reference,
      {.operands = call.operands, .results = call.results, .devices = call.batch, .stacked = call.stacked});
  std::vector<std::size_t> operand_strides, result_strides;  // from one logical device to the next
  for (std::size_t i = 0; i < request.operands.size(); ++i) {
    operand_strides.push_back(request.stacked[i] ? bytes(request.operands[i]) : 0);
  }
  for (const Type& type : request.results) result_strides.push_back(bytes(type));
  return [=](const test::HostMemory& memory) {
    std::vector<const std::byte*> from(memory.operands.begin(), memory.operands.end());
    std::vector<std::byte*> to(memory.results.begin(), memory.results.end());
    for (std::int64_t i = 0; i < calls; ++i) {
      kernel->run({from.data(), to.data(), nullptr});
      for (std::size_t k = 0; k < from.size(); ++k) from[k] += operand_strides[k];
      for (std::size_t k = 0; k < to.size(); ++k) to[k] += result_strides[k];
    }
  };
}

void round_to_bf16(std::byte* values, std::size_t bytes) {
  auto* const numbers = reinterpret_cast<float*>(values);
  for (std::size_t i = 0; i < bytes / sizeof(float); ++i) numbers[i] = static_cast<float>(bf16(numbers[i]));
}

// Operand 2 is an f32 bias. The libraries read it as bf16 where they give bf16.
RunCommand with_rounded_bias(RunCommand run, const GpuRequest& request) {
  const std::size_t size =
      bytes(request.operands[2]) * static_cast<std::size_t>(request.stacked[2] ? request.devices : 1);
  return [run = std::move(run), size](const test::HostMemory& memory) {
    std::vector<const std::byte*> operands(memory.operands.begin(), memory.operands.end());
    const auto rounded = std::make_unique_for_overwrite<std::byte[]>(size);
    std::copy_n(operands[2], size, rounded.get());
    round_to_bf16(rounded.get(), size);
    operands[2] = rounded.get();
    run({operands, memory.results, memory.scratch});
  };
}

// Result 0 is of f32, computed from bf16. The library gives bf16, which a kernel converts.
RunCommand with_rounded_result(RunCommand run, const GpuRequest& request) {
  const std::size_t size = bytes(request.results[0]) * static_cast<std::size_t>(request.devices);
  return [run = std::move(run), size](const test::HostMemory& memory) {
    run(memory);
    round_to_bf16(memory.results[0], size);
  };
}

}  // namespace

namespace {

// The rows of a are gathered, as the reference takes them one after another.
RunCommand run_in_places(const GpuMatmul& p) {
  if (p.bias || p.relu || p.column_sums || p.transpose_a || p.calls != 1) fail_running("no such product in places");
  const Type a{p.operands, {p.m, p.k}, {}}, b{p.operands, p.transpose_b ? Shape{p.n, p.k} : Shape{p.k, p.n}, {}};
  const std::vector<Type> operands{a, b}, results{{p.result, {p.m, p.n}, {}}};
  const bool widens = p.result != p.operands;
  const Op op = ops::Matmul{false, p.transpose_b, false, widens ? std::optional(p.result) : std::nullopt};
  const std::shared_ptr<CpuKernel> kernel = make_reference_kernel(
      op.shared(), kernels_of(op).reference,
      {.operands = operands, .results = results, .devices = p.batch, .stacked = {true, p.b_stride != 0}});
  return [p, kernel, row = bytes(a) / static_cast<std::size_t>(p.m)](const test::HostMemory& memory) {
    const auto at = [&](const GpuArgument& place) {
      return reinterpret_cast<std::byte*>(gpu::value_of(place, memory));
    };
    const std::size_t element = size_of(p.operands);
    std::vector<std::byte> rows;
    for (std::int64_t i = 0; i < p.batch * p.m; ++i) {
      const std::int64_t begin = i / p.m * p.a_stride + i % p.m * p.places->a_row;
      const std::byte* const from = at(p.places->a) + static_cast<std::size_t>(begin) * element;
      rows.insert(rows.end(), from, from + row);
    }
    const std::byte* const from[] = {rows.data(), at(p.places->b)};
    std::byte* const to[] = {at(p.places->result)};
    kernel->run({from, to, nullptr});
  };
}

}  // namespace

RunCommand run_by_library(const GpuMatmul& product, const GpuRequest& request) {
  if (product.places) return run_in_places(product);
  const auto& [m, n, k, transpose_a, transpose_b, relu, operands, result, bias, batch, calls, a_stride, b_stride,
               bias_stride, column_sums, places] = product;
  LibraryCall call{ops::Matmul{transpose_a, transpose_b, relu, {}}, {}, {Type{result, {m, n}, {}}}, batch, {}};
  if (column_sums) {
    if (!transpose_a || transpose_b || relu || bias) fail_running("no op gives this product and sums of columns");
    call.op = ops::MatmulKernelGrad{};
    call.results.push_back({*column_sums, {n}, {}});
  }
  const auto add = [&call](DType dtype, Shape shape, std::int64_t stride) {
    call.operands.push_back({dtype, std::move(shape), {}});
    call.stacked.push_back(stride == numel(call.operands.back()));
  };
  add(operands, transpose_a ? Shape{k, m} : Shape{m, k}, a_stride);
  add(operands, transpose_b ? Shape{n, k} : Shape{k, n}, b_stride);
  if (bias) add(*bias, {n}, bias_stride);
  RunCommand run = run_calls(call, calls, request);
  return bias == DType::f32 && result == DType::bf16 ? with_rounded_bias(std::move(run), request) : run;
}

RunCommand run_by_library(const GpuConv& conv, const GpuRequest& request) {
  const auto& [kind, x_shape, kernel_shape, y_shape, strides, dilation, padding, relu, operands, result, bias, calls] =
      conv;
  const std::int64_t of_kernel = kernel_shape[kernel_shape.size() - 2];
  const std::int64_t groups = of_kernel == 0 ? 1 : x_shape.back() / of_kernel;
  const bool is_forward = kind == GpuConv::Kind::forward, is_input_grad = kind == GpuConv::Kind::input_grad;
  const Type x{is_input_grad ? result : operands, x_shape, {}}, y{is_forward ? result : operands, y_shape, {}};
  const Type kernel{kind == GpuConv::Kind::kernel_grad ? result : operands, kernel_shape, {}};
  std::vector<Type> biases;
  if (bias) biases.push_back({*bias, {y_shape.back()}, {}});
  LibraryCall call{ops::Conv{strides, padding, relu, dilation, groups, {}}, {x, kernel}, {y}};
  switch (kind) {
    case GpuConv::Kind::forward: call.operands.insert(call.operands.end(), biases.begin(), biases.end()); break;
    case GpuConv::Kind::input_grad:
      call = {ops::ConvInputGrad{strides, padding, x_shape, dilation, groups, {}}, {kernel, y}, {x}};
      break;
    case GpuConv::Kind::kernel_grad:
      call = {ops::ConvKernelGrad{strides, padding, kernel_shape, bias.has_value(), dilation, groups, {}},
              {x, y},
              {kernel}};
      call.results.insert(call.results.end(), biases.begin(), biases.end());
      break;
  }
  call.stacked.assign(call.operands.size(), true);
  RunCommand run = run_calls(call, calls, request);
  if (is_forward && bias == DType::f32 && result == DType::bf16) return with_rounded_bias(std::move(run), request);
  const bool is_kernel_grad = kind == GpuConv::Kind::kernel_grad;
  if (is_kernel_grad && operands == DType::bf16 && result == DType::f32) {
    return with_rounded_result(std::move(run), request);
  }
  return run;
}

RunCommand run_by_library(const GpuAttention& attention, const GpuRequest& request) {
  const auto& [kind, examples, queries, keys, heads, width, causal, deterministic, calls] = attention;
  const Type q{DType::bf16, {examples, queries, heads, width}, {}}, k{DType::bf16, {examples, keys, heads, width}, {}};
  const Type lse{DType::f32, {examples, queries, heads}, {}};
  LibraryCall call{ops::Attention{causal}, {q, k, k}, {q, lse}, calls};
  if (kind == GpuAttention::Kind::gradient) {
    call = {ops::AttentionGrad{causal}, {q, k, k, q, lse, q}, {q, k, k}, calls};
  }
  call.stacked.assign(call.operands.size(), true);
  return run_calls(call, 1, request);
}

std::vector<const std::byte*> arrays_of(const gpu::Addends& group) {
  std::vector<const std::byte*> arrays;
  for (std::int64_t i = 0; i < group.arrays.count; ++i) arrays.push_back(group.from + group.arrays.offset(i));
  return arrays;
}

std::size_t bytes_of(const gpu::Addends& group, DType dtype) {
  return size_of(dtype) * static_cast<std::size_t>(group.elements);
}

void check_groups(const std::string& what, std::span<const gpu::Addends> all, DType dtype,
                  std::span<const TreeNode> tree) {
  if (all.size() > gpu::Device::most_reduced) fail_running(what + ": " + std::to_string(all.size()) + " at once");
  const auto taken = std::accumulate(tree.begin(), tree.end(), std::int64_t{0},
                                     [](std::int64_t sum, const TreeNode& node) { return sum + node.operands; });
  for (const gpu::Addends& group : all) {
    if (taken != group.arrays.count || tree.size() > gpu::Device::most_nodes) {
      fail_running(what + ": a tree of " + std::to_string(tree.size()) + " nodes takes " + std::to_string(taken) +
                   " of " + std::to_string(group.arrays.count) + " arrays");
    }
    const Range result{group.to, bytes_of(group, dtype)};
    for (const gpu::Addends& other : all) {
      if (&other != &group && overlap({other.to, bytes_of(other, dtype)}, result))
        fail_running(what + " writes two results to the same place");
      for (const std::byte* const array : arrays_of(other)) {
        const bool in_place = &other == &group && array == group.to;
        if (!in_place && overlap({array, bytes_of(other, dtype)}, result))
          fail_running(what + " writes over part of what it reads");
      }
    }
  }
}

std::vector<std::byte> reduce_arrays(const std::string& what, gpu::Device::Reduction reduce, DType dtype,
                                     std::size_t bytes, std::span<const std::byte* const> arrays,
                                     std::span<const TreeNode> tree) {
  using Reduction = gpu::Device::Reduction;
  if (dtype == DType::boolean || (dtype == DType::bf16 && reduce == Reduction::sum)) {
    fail_running(what + ": no sum of " + std::string(to_string(dtype)),
                 "bool has no sums and no order, and sums of bf16 are rounded from f32 once, at their end");
  }
  if (arrays.empty() || bytes % size_of(dtype) != 0) {
    fail_running(what + ": " + std::to_string(arrays.size()) + " arrays of " + std::to_string(bytes) +
                 " bytes are no arrays of " + std::string(to_string(dtype)));
  }
  const Type type{dtype, {static_cast<std::int64_t>(bytes / size_of(dtype))}, {}};
  std::vector<ConstArray> members;
  for (const std::byte* const array : arrays) members.push_back({&type, array});
  std::vector<std::byte> reduced(bytes);
  const std::span<const ConstArray> operand(members);
  const Array result{&type, reduced.data()};
  const CollectiveCall call{{&operand, 1}, 0, {&result, 1}, tree};
  switch (reduce) {
    case Reduction::sum: ops::Psum{}.exchange(call); break;
    case Reduction::max: ops::Pmax{}.exchange(call); break;
    case Reduction::min: ops::Pmin{}.exchange(call); break;
  }
  return reduced;
}

}  // namespace pmaptrain::emulation
