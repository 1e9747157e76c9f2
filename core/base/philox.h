// Counter-based random numbers: every random bit is a pure function of (seed, named stream, counter), so it does not
// depend on the device or the order of computation.
//
// This is the only wrapper of Random123's Philox-4x32-10. Names of streams in use: "init/<parameter path>",
// "data/true", "data/examples", "data/shuffle", "data/validation", "data/augment/<index>/<name>", "data/offset",
// "dropout/<layer>".
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace pmaptrain {

using PhiloxKey = std::array<std::uint32_t, 2>;
using PhiloxCounter = std::array<std::uint32_t, 4>;

// Four independent uniform words for each (key, counter).
std::array<std::uint32_t, 4> philox4x32(PhiloxKey key, PhiloxCounter counter);

// The key of a named stream of `seed`: the xxHash64 of the name, encrypted with the seed. Different names or seeds give
// independent streams.
PhiloxKey stream_key(std::uint64_t seed, std::string_view stream);

// The words of one row of a stream: words 4k to 4k+3 are philox4x32(key, {k, lane, row's low half, row's high half}).
// `lane` separates uses of one stream. words.size() is at most 2^34.
void philox_row(PhiloxKey key, std::uint64_t row, std::uint32_t lane, std::span<std::uint32_t> words);

// Uniform in [0, 1), from the top 24 bits, so that every value is an exact float less than 1.
constexpr float uniform_from_bits(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1.0p-24F; }

// Uniform in [0, count), with a bias of at most count / 2^32.
constexpr std::uint32_t uniform_below(std::uint32_t bits, std::uint32_t count) {
  return static_cast<std::uint32_t>(std::uint64_t{bits} * count >> 32);
}

// Two independent standard normals by Box-Muller, computed in double: the radius from `a`, the angle from `b`. Finite
// for every input, at most 6.67 in absolute value. Uses the logarithm and the cosine of the C library.
std::array<double, 2> normal_pair(std::uint32_t a, std::uint32_t b);

// The first of normal_pair, as float.
float normal_from_bits(std::uint32_t a, std::uint32_t b);

// Element `index` of a stream of values: of the standard normal distribution, and uniform in [0, 1).
double standard_normal(PhiloxKey key, std::uint64_t index);
double standard_uniform(PhiloxKey key, std::uint64_t index);

// A value of the standard normal distribution truncated at two, for element `index` of a stream. Each element has its
// own sequence of normal values, and takes the first in range (95 % are), so it does not depend on the other elements.
double truncated_normal(PhiloxKey key, std::uint64_t index);

}  // namespace pmaptrain
