// The most memory that a call of a library may use as its workspace. Algorithms that need more are not used.
#pragma once

#include <cstddef>

namespace pmaptrain {

inline constexpr std::size_t conv_budget = std::size_t{512} << 20;   // for cuDNN
inline constexpr std::size_t matmul_budget = std::size_t{32} << 20;  // for cuBLASLt: NVIDIA's recommendation for Hopper

}  // namespace pmaptrain
