// Converts one element, for Cast and for fused chains that contain a cast.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/base/bf16.h"

namespace pmaptrain::ops {

template <class To, class From>
To convert(From x) {
  if constexpr (std::is_same_v<From, bf16>) {
    return convert<To>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From{0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Both bounds are 0 or powers of two, so they are exact. The upper one is the first that does not fit.
    constexpr auto lowest = static_cast<From>(std::numeric_limits<To>::min());
    constexpr auto above = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * From{2};
    if (x != x) return To{0};
    if (x < lowest) return std::numeric_limits<To>::min();
    if (x >= above) return std::numeric_limits<To>::max();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace pmaptrain::ops
