#include "core/kernel/vector_normal.h"

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/catch.h"
#include "tests/ops/targets.h"
#include "tests/slice.h"

namespace pmaptrain {
namespace {

// How many elements differ in their bits, so that 0 and -0 differ.
std::size_t different(const std::vector<float>& found, const std::vector<float>& expected) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(found[i]) != std::bit_cast<std::uint32_t>(expected[i])) ++count;
  }
  return count;
}

// Words at which the logarithm or an angle is special: u near 0 and 1 and at powers of 2, multiples of an eighth turn.
std::vector<std::uint32_t> special_words() {
  std::vector<std::uint32_t> words;
  for (int eighth = 0; eighth < 8; ++eighth) {
    for (std::uint32_t near = 0; near < 40; ++near)
      words.push_back((static_cast<std::uint32_t>(eighth) << 29) + near - 20);
  }
  for (int power = 0; power < 32; ++power) {
    for (std::uint32_t near = 0; near < 4; ++near) words.push_back((1U << power) + near - 2);
  }
  return words;
}

TEST_CASE("normals by vectors have the bits of normal_from_bits, on every instruction set", "[ops]") {
  std::vector<std::uint32_t> a, b;
  for (const std::uint32_t first : special_words()) {
    for (const std::uint32_t second : special_words()) {
      a.push_back(first);
      b.push_back(second);
    }
  }
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    const auto words = philox4x32({1, 2}, {i, 0, 0, 0});
    a.push_back(words[0]);
    b.push_back(words[1]);
    a.push_back(words[2] | 0xFFFF0000u);              // a small radius
    b.push_back((words[3] & 0xFFFFu) + 0x3FFF8000u);  // an angle near a quarter turn
  }
  std::vector<float> expected(a.size()), found(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) expected[i] = normal_from_bits(a[i], b[i]);
  test::on_every_target([&] {
    std::fill(found.begin(), found.end(), -9.0F);
    vector_normals(a.size(), a.data(), b.data(), found.data());
    CHECK(different(found, expected) == 0);
  });
}

TEST_CASE("truncated normals by vectors have the bits of the scalar function, on every instruction set", "[ops]") {
  const std::uint64_t first = (std::uint64_t{3} << 32) - 1000;  // the high half of the counter changes
  constexpr double scale = 0.017;
  constexpr std::size_t most = 60'000;
  const PhiloxKey key = stream_key(5, "init/dense_0.kernel");
  std::vector<float> expected(most);
  // Of so many, 2700 take the second normal of their sequence, and 120 a later one.
  for (std::size_t i = 0; i < most; ++i) expected[i] = static_cast<float>(scale * truncated_normal(key, first + i));
  test::on_every_target([&] {
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{17},
                                std::size_t{511}, std::size_t{512}, std::size_t{1029}, most}) {
      std::vector<float> found(n + 1, -9.0F);
      vector_truncated_normals(key, first, n, scale, found.data());
      CHECK(different(found, {expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(n)}) == 0);
      CHECK(found[n] == -9.0F);
    }
  });
}

TEST_CASE("a draw does not depend on where the range of elements begins", "[ops]") {
  const PhiloxKey key = stream_key(6, "init/a.kernel");
  std::vector<float> all(3000), parts(3000);
  vector_truncated_normals(key, 0, 3000, 1.0, all.data());
  for (std::size_t begin = 0; begin < 3000; begin += 250 + 1) {
    vector_truncated_normals(key, begin, std::min<std::size_t>(251, 3000 - begin), 1.0, parts.data() + begin);
  }
  CHECK(different(parts, all) == 0);
  CHECK(*std::max_element(all.begin(), all.end(), [](float x, float y) { return std::abs(x) < std::abs(y); }) <= 2);
}

// The parts of normal_pair() for each word: its radius, and the cosine and sine of its angle.
struct Parts {
  std::vector<double> radius, cosine, sine;
  explicit Parts(std::size_t n) : radius(n), cosine(n), sine(n) {}
};

Parts exact_parts(const std::vector<std::uint32_t>& words) {
  Parts exact(words.size());
  const double longest = normal_pair(0, 0)[0];
  for (std::size_t i = 0; i < words.size(); ++i) {
    exact.radius[i] = normal_pair(words[i], 0)[0];
    const auto [x, y] = normal_pair(0, words[i]);
    exact.cosine[i] = x / longest;
    exact.sine[i] = y / longest;
  }
  return exact;
}

// The largest errors by vectors of radius, relative to it, of cosine and of sine.
std::array<double, 3> errors_of(const std::vector<std::uint32_t>& words, const Parts& exact) {
  const std::size_t n = words.size();
  Parts found(n);
  vector_normal_parts(n, words.data(), words.data(), found.radius.data(), found.cosine.data(), found.sine.data());
  std::array<double, 3> errors = {};
  for (std::size_t i = 0; i < n; ++i) {
    const double longer = exact.radius[i] == 0 ? 1 : exact.radius[i];
    errors[0] = std::max(errors[0], std::abs(found.radius[i] - exact.radius[i]) / longer);
    errors[1] = std::max(errors[1], std::abs(found.cosine[i] - exact.cosine[i]));
    errors[2] = std::max(errors[2], std::abs(found.sine[i] - exact.sine[i]));
  }
  return errors;
}

// With these bounds, no pair of words has another float: judge() takes a float only if the whole range of error has it.
TEST_CASE("the error of radius, cosine and sine by vectors is at most a quarter of what is in doubt", "[ops]") {
  constexpr std::uint32_t slices = 128, step = 599;
  test::Slice slice(slices);
  std::vector<std::vector<std::uint32_t>> samples = {special_words()};
  for (std::uint32_t offset = 0; offset < slices; ++offset) {
    if (!slice.takes()) continue;
    std::vector<std::uint32_t>& words = samples.emplace_back();
    // The stride is odd, so that the low bits vary too.
    for (std::uint64_t word = offset * step; word < (std::uint64_t{1} << 32); word += slices * step + 1) {
      words.push_back(static_cast<std::uint32_t>(word));
    }
  }
  for (const std::vector<std::uint32_t>& words : samples) {
    const Parts exact = exact_parts(words);
    test::on_every_target([&] {
      const auto [radius, cosine, sine] = errors_of(words, exact);
      CHECK(radius <= normal_doubt / 4);
      CHECK(cosine <= normal_doubt / 4);
      CHECK(sine <= normal_doubt / 4);
    });
  }
}

}  // namespace
}  // namespace pmaptrain

#endif  // PMAPTRAIN_REFERENCE_KERNELS
