// Elements of f16, which files of others have and this program does not compute with.
#pragma once

#include <bit>
#include <cstdint>

namespace pmaptrain {

// The same value as f32. An f16 has 5 bits of exponent and 10 of fraction.
inline float widened_half(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t exponent = half >> 10 & 0x1FU, fraction = half & 0x3FFU;
  if (exponent == 0) {  // zero or subnormal: a multiple of 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t wide = exponent == 0x1F ? 0xFF : exponent + 127 - 15;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

}  // namespace pmaptrain
