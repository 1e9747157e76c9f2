// The element type bf16 (bfloat16): the upper half of an f32, with its range and 8 bits of precision.
//
// A bf16 only stores a value. It converts to float by itself, as C++23's std::bfloat16_t does, so arithmetic on it is
// that of f32, and back only explicitly, rounded to nearest, ties to even. Rounding is by integer operations: it keeps
// subnormal numbers, which the CPU's own instruction (vcvtneps2bf16) flushes to 0, and gives the same bits everywhere.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace pmaptrain {

class bf16 {
 public:
  bf16() = default;
  constexpr explicit bf16(float x) : bits_(rounded(std::bit_cast<std::uint32_t>(x))) {}
  // The conversion rounds once: to_odd() rounds a value between two floats to the odd one, so the next rounding is
  // correct.
  constexpr explicit bf16(double x) : bf16(to_odd(x)) {}
  template <std::integral T>
  constexpr explicit bf16(T x) : bf16(to_odd(x)) {}

  constexpr operator float() const {  // NOLINT: exact
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits_) << 16);
  }
  // An element is cast to an integer with care for NaN and range (core/ops/cast/convert.h).
  template <std::integral T>
  explicit operator T() const = delete;

  static constexpr bf16 from_bits(std::uint16_t bits) {
    bf16 x{};
    x.bits_ = bits;
    return x;
  }
  constexpr std::uint16_t bits() const { return bits_; }

 private:
  // A NaN keeps its sign and upper bits, and is quiet.
  static constexpr std::uint16_t rounded(std::uint32_t f32) {
    const std::uint32_t nearest = (f32 + 0x7FFF + (f32 >> 16 & 1)) >> 16;
    const std::uint32_t quiet = f32 >> 16 | 0x40;
    return static_cast<std::uint16_t>((f32 & 0x7FFFFFFF) > 0x7F800000 ? quiet : nearest);
  }

  static constexpr float to_odd(double x) {
    const auto nearest = static_cast<float>(x);
    const auto back = static_cast<double>(nearest);
    if (back == x || x != x) return nearest;
    auto bits = std::bit_cast<std::uint32_t>(nearest);
    if ((back > x) == (x > 0)) --bits;  // towards 0
    return std::bit_cast<float>(bits | 1);
  }
  // Digits that a double cannot hold are far below the precision of bf16. One sticky bit represents them.
  template <std::integral T>
  static constexpr float to_odd(T x) {
    if constexpr (sizeof(T) == 8) {
      constexpr T exact = T{1} << 53, below = 0x7FF;
      const bool held = x < exact && (std::is_unsigned_v<T> || x > T{0} - exact);
      if (!held && (x & below) != 0) x = static_cast<T>((x & ~below) | T{0x400});
    }
    return to_odd(static_cast<double>(x));
  }

  std::uint16_t bits_;
};

static_assert(sizeof(bf16) == 2 && std::is_trivially_copyable_v<bf16> && std::is_trivial_v<bf16>);

// C++ types of floating elements.
template <class T>
concept FloatingElement = std::is_floating_point_v<T> || std::is_same_v<T, bf16>;

}  // namespace pmaptrain

template <>
struct std::numeric_limits<pmaptrain::bf16> {
  static constexpr bool is_specialized = true;
  static constexpr int digits = 8;
  static constexpr pmaptrain::bf16 max() { return pmaptrain::bf16::from_bits(0x7F7F); }
  static constexpr pmaptrain::bf16 lowest() { return pmaptrain::bf16::from_bits(0xFF7F); }
  static constexpr pmaptrain::bf16 infinity() { return pmaptrain::bf16::from_bits(0x7F80); }
  static constexpr pmaptrain::bf16 quiet_NaN() { return pmaptrain::bf16::from_bits(0x7FC0); }
};
