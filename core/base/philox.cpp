#include "core/base/philox.h"

#include <Random123/philox.h>

#include <cmath>
#include <numbers>

#define XXH_INLINE_ALL
#include <xxhash.h>

// Random123 also defines a function-like macro of this name for C.
#undef philox4x32

namespace pmaptrain {
namespace {

constexpr std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
constexpr std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

inline r123::Philox4x32::ctr_type encipher(PhiloxKey key, PhiloxCounter counter) {
  const r123::Philox4x32::ctr_type in = {{counter[0], counter[1], counter[2], counter[3]}};
  const r123::Philox4x32::key_type k = {{key[0], key[1]}};
  return r123::Philox4x32()(in, k);
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(PhiloxKey key, PhiloxCounter counter) {
  const auto out = encipher(key, counter);
  return {out[0], out[1], out[2], out[3]};
}

PhiloxKey stream_key(std::uint64_t seed, std::string_view stream) {
  const std::uint64_t name = XXH64(stream.data(), stream.size(), 0);
  const auto words = philox4x32({low(seed), high(seed)}, {low(name), high(name), 0, 0});
  return {words[0], words[1]};
}

void philox_row(PhiloxKey key, std::uint64_t row, std::uint32_t lane, std::span<std::uint32_t> words) {
  const std::uint32_t row_low = low(row);
  const std::uint32_t row_high = high(row);
  const std::size_t whole = words.size() / 4;
  for (std::size_t k = 0; k < whole; ++k) {
    const auto out = encipher(key, {static_cast<std::uint32_t>(k), lane, row_low, row_high});
    for (std::size_t j = 0; j < 4; ++j) words[4 * k + j] = out[j];
  }
  if (words.size() % 4 != 0) {
    const auto out = encipher(key, {static_cast<std::uint32_t>(whole), lane, row_low, row_high});
    for (std::size_t j = 0; j < words.size() % 4; ++j) words[4 * whole + j] = out[j];
  }
}

std::array<double, 2> normal_pair(std::uint32_t a, std::uint32_t b) {
  const double u = (static_cast<double>(a) + 1.0) * 0x1.0p-32;  // (0, 1]: its logarithm is finite
  const double angle = 2.0 * std::numbers::pi * (static_cast<double>(b) * 0x1.0p-32);
  const double radius = std::sqrt(-2.0 * std::log(u));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

float normal_from_bits(std::uint32_t a, std::uint32_t b) { return static_cast<float>(normal_pair(a, b)[0]); }

double standard_normal(PhiloxKey key, std::uint64_t index) {
  const auto words = philox4x32(key, {0, 0, low(index), high(index)});
  return normal_pair(words[0], words[1])[0];
}

double standard_uniform(PhiloxKey key, std::uint64_t index) {
  return static_cast<double>(uniform_from_bits(philox4x32(key, {0, 0, low(index), high(index)})[0]));
}

double truncated_normal(PhiloxKey key, std::uint64_t index) {
  for (std::uint32_t attempt = 0;; ++attempt) {
    const auto words = philox4x32(key, {attempt, 0, low(index), high(index)});
    for (std::size_t pair = 0; pair < 4; pair += 2) {
      for (double normal : normal_pair(words[pair], words[pair + 1])) {
        if (std::abs(normal) <= 2.0) return normal;
      }
    }
  }
}

}  // namespace pmaptrain
