#include "core/base/bf16.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/kernel/vector_convert.h"
#include "tests/catch.h"

namespace pmaptrain {
namespace {

float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

std::vector<bf16> all_values() {
  std::vector<bf16> values;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
    values.push_back(bf16::from_bits(static_cast<std::uint16_t>(bits)));
  return values;
}

// To nearest, ties to even, by search among the two neighbours: another way than the class takes.
std::uint16_t nearest(double x) {
  const auto below = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(std::abs(x))) >> 16);
  std::uint16_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int candidate = std::max(0, below - 1); candidate <= std::min(below + 1, 0x7F80); ++candidate) {
    const auto bits = static_cast<std::uint16_t>(candidate);
    const double value = bits == 0x7F80 ? 0x1p128 : static_cast<double>(static_cast<float>(bf16::from_bits(bits)));
    const double distance = std::abs(value - std::abs(x));
    if (distance < least || (distance == least && bits % 2 == 0)) {
      least = distance;
      best = bits;
    }
  }
  return static_cast<std::uint16_t>(best | (std::signbit(x) ? 0x8000 : 0));
}

TEST_CASE("a bf16 keeps its bits through f32, and a NaN becomes quiet", "[base]") {
  for (const bf16 x : all_values()) {
    const std::uint16_t bits = x.bits();
    const bool is_nan = (bits & 0x7FFF) > 0x7F80;
    CHECK(std::isnan(static_cast<float>(x)) == is_nan);
    REQUIRE(bf16(static_cast<float>(x)).bits() == (is_nan ? bits | 0x40 : bits));
  }
}

TEST_CASE("f32 becomes the nearest bf16, of two the even one, subnormals too", "[base]") {
  CHECK(bf16(float_of(0x3F808000)).bits() == 0x3F80);  // ties: to the even neighbour
  CHECK(bf16(float_of(0x3F818000)).bits() == 0x3F82);
  CHECK(bf16(float_of(0x3F808001)).bits() == 0x3F81);
  CHECK(bf16(float_of(0x7F7F7FFF)).bits() == 0x7F7F);  // the last before the tie with infinity
  CHECK(bf16(float_of(0x7F7F8000)).bits() == 0x7F80);
  CHECK(bf16(float_of(0x00010000)).bits() == 0x0001);  // subnormal
  CHECK(bf16(float_of(0x80008001)).bits() == 0x8001);
  CHECK(bf16(float_of(0x7F800001)).bits() == 0x7FC0);  // a NaN with all of its payload in the lower half
  std::uint32_t state = 1;
  for (int i = 0; i < 100'000; ++i) {
    state = state * 1664525u + 1013904223u;
    const float x = float_of(state);
    if (std::isnan(x)) continue;
    INFO(std::hex << state);
    REQUIRE(bf16(x).bits() == nearest(std::isinf(x) ? std::copysign(0x1p128, x) : static_cast<double>(x)));
  }
}

TEST_CASE("f64 and integers become the nearest bf16 by one rounding", "[base]") {
  // To f32 first they would be ties, and go to the even side.
  CHECK(bf16(1 + 0x1p-8 + 0x1p-40).bits() == 0x3F81);
  CHECK(bf16(1 + 0x1p-7 + 0x1p-8 - 0x1p-40).bits() == 0x3F81);
  CHECK(bf16(-(1 + 0x1p-8 + 0x1p-40)).bits() == 0xBF81);
  CHECK(bf16(1e300).bits() == 0x7F80);
  CHECK(bf16(1e-300).bits() == 0);
  CHECK(bf16(-1e-300).bits() == 0x8000);
  CHECK(std::isnan(static_cast<float>(bf16(std::nan("")))));
  const std::int64_t tie = (std::int64_t{1} << 62) + (std::int64_t{1} << 54);
  CHECK(bf16(tie).bits() == 0x5E80);
  CHECK(bf16(tie + 1).bits() == 0x5E81);
  CHECK(bf16(-tie - 1).bits() == 0xDE81);
  CHECK(bf16(tie - 1).bits() == 0x5E80);
  CHECK(bf16(std::numeric_limits<std::int64_t>::min()).bits() == 0xDF00);
  CHECK(bf16((1 << 24) + (1 << 16) + 1).bits() == 0x4B81);
  CHECK(static_cast<float>(bf16(257)) == 256.0F);
  CHECK(static_cast<float>(bf16(true)) == 1.0F);
}

TEST_CASE("arrays of bf16 are converted as single elements are", "[base]") {
  const std::vector<bf16> values = all_values();
  std::vector<float> wide(values.size());
  to_f32(values.size(), values.data(), wide.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto expected = static_cast<float>(values[i]);
    if (std::memcmp(&wide[i], &expected, sizeof expected) != 0) FAIL("element " << i);
  }
  std::vector<float> x;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t lower : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu})
      x.push_back(float_of(upper << 16 | lower));
  }
  for (const std::size_t n : {x.size(), x.size() - 7}) {
    std::vector<bf16> narrow(n + 1, bf16(77));
    to_bf16(n, x.data(), narrow.data());
    for (std::size_t i = 0; i < n; ++i) {
      if (narrow[i].bits() == bf16(x[i]).bits()) continue;
      INFO(std::hex << std::bit_cast<std::uint32_t>(x[i]));
      REQUIRE(narrow[i].bits() == bf16(x[i]).bits());
    }
    CHECK(narrow[n].bits() == bf16(77).bits());
  }
}

}  // namespace
}  // namespace pmaptrain
