// The most memory that a library may ask for while one of its kernels runs: an algorithm that asks for more is not
// taken.
#pragma once

#include <cstddef>

namespace pmaptrain {

inline constexpr std::size_t conv_budget = std::size_t{512} << 20;   // of cuDNN
inline constexpr std::size_t matmul_budget = std::size_t{32} << 20;  // of cuBLASLt: NVIDIA's advice for Hopper

}  // namespace pmaptrain
