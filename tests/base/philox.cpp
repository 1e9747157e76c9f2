#include "core/base/philox.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "tests/catch.h"

using namespace pmaptrain;

TEST_CASE("Philox gives Random123's known answers", "[base]") {
  using Words = std::array<std::uint32_t, 4>;
  CHECK(philox4x32({0, 0}, {0, 0, 0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t ones = 0xffffffff;
  CHECK(philox4x32({ones, ones}, {ones, ones, ones, ones}) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a row of Philox words is the concatenation of its blocks", "[base]") {
  const PhiloxKey key = stream_key(7, "data/examples");
  const std::uint64_t row = 0x123456789aULL;
  for (std::size_t count : {0U, 1U, 4U, 7U, 13U}) {
    std::vector<std::uint32_t> words(count);
    philox_row(key, row, 3, words);
    for (std::size_t i = 0; i < count; ++i) {
      const auto block = philox4x32(key, {static_cast<std::uint32_t>(i / 4), 3, 0x3456789a, 0x12});
      CHECK(words[i] == block[i % 4]);
    }
  }
}

TEST_CASE("streams differ by name and by both halves of the seed", "[base]") {
  const std::set<PhiloxKey> keys = {stream_key(0, "data/true"), stream_key(0, "data/examples"),
                                    stream_key(1, "data/true"), stream_key(1ULL << 32, "data/true"), stream_key(0, "")};
  CHECK(keys.size() == 5);
  CHECK(stream_key(5, "data/true") == stream_key(5, "data/true"));
}

TEST_CASE("uniforms lie in [0, 1) and normals are finite at the extremes", "[base]") {
  CHECK(uniform_from_bits(0) == 0.0F);
  CHECK(uniform_from_bits(0xffffffff) < 1.0F);
  CHECK(uniform_from_bits(0x80000000) == 0.5F);
  for (std::uint32_t a : {0U, 1U, 0xffffffffU}) {
    for (std::uint32_t b : {0U, 1U, 0xffffffffU}) {
      CHECK(std::abs(normal_pair(a, b)[0]) < 6.67);
      CHECK(std::abs(normal_pair(a, b)[1]) < 6.67);
    }
  }
}

TEST_CASE("normals have mean 0, variance 1 and no correlation within a pair", "[base]") {
  const PhiloxKey key = stream_key(0, "test");
  constexpr int count = 20000;
  double sum = 0;
  double squares = 0;
  double products = 0;
  double fourth = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto words = philox4x32(key, {i, 0, 0, 0});
    const auto [x, y] = normal_pair(words[0], words[1]);
    sum += x + y;
    squares += x * x + y * y;
    fourth += x * x * x * x + y * y * y * y;
    products += x * y;
  }
  CHECK(std::abs(sum / (2 * count)) < 0.02);
  CHECK(std::abs(squares / (2 * count) - 1) < 0.03);
  CHECK(std::abs(fourth / (2 * count) - 3) < 0.2);
  CHECK(std::abs(products / count) < 0.03);
}
