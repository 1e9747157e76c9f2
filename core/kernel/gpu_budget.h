// The most memory that a call of a library may use as its workspace. Algorithms that need more are not used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "core/base/saturate.h"
#include "core/kernel/gpu.h"

namespace pmaptrain {

inline constexpr std::size_t conv_budget = std::size_t{512} << 20;   // for cuDNN
inline constexpr std::size_t matmul_budget = std::size_t{32} << 20;  // for cuBLASLt: NVIDIA's recommendation for Hopper
inline constexpr std::size_t attention_budget = std::size_t{512} << 20;  // for cuDNN, see attention_workspace()

// The most that a call of cuDNN's attention takes on any GPU: lse in cuDNN's layout, and for the gradient a product for
// each query, and dq in f32, twice on some GPUs. A deterministic gradient may keep the gradients of all scores, in
// bf16, instead of dq. The rest is small. It stands for cuDNN's plan, which takes a driver.
inline std::size_t attention_workspace(const GpuAttention& call) {
  const auto product = [](std::initializer_list<std::int64_t> sizes) {
    std::size_t bytes = 1;
    for (const std::int64_t size : sizes) bytes = product_of(bytes, static_cast<std::size_t>(size));
    return bytes;
  };
  const std::size_t rows = product({call.examples, call.heads, call.queries}), rest = std::size_t{1} << 20;
  if (call.kind == GpuAttention::Kind::forward) return sum_of(product_of(rows, sizeof(float)), rest);
  const std::size_t of_row = call.deterministic ? product({call.keys, 2}) : product({call.width, 2 * sizeof(float)});
  return sum_of(product_of(rows, sum_of(2 * sizeof(float), of_row)), rest);
}

}  // namespace pmaptrain
