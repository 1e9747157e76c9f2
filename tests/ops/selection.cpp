// Ops that join, turn round, add up by index or in order, and choose.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "core/base/philox.h"
#include "core/ops/list.h"
#include "tests/arrays.h"
#include "tests/catch.h"
#include "tests/ops/targets.h"

namespace pmaptrain {
namespace {

using namespace ops;
using namespace test;

using Floats = std::vector<float>;
using Ints = std::vector<std::int32_t>;
using Bytes = std::vector<std::uint8_t>;

TEST_CASE("concatenate puts arrays one after another along any dimension", "[ops]") {
  const HostArray x = i32({2, 2}, {1, 2, 3, 4}), y = i32({2, 1}, {5, 6}), z = i32({1, 2}, {7, 8});
  CHECK(apply(Concatenate{1}, {x, y, x}).as<std::int32_t>() == Ints{1, 2, 5, 1, 2, 3, 4, 6, 3, 4});
  CHECK(apply(Concatenate{1}, {x, y, x}).type.shape == Shape{2, 5});
  CHECK(apply(Concatenate{0}, {z, x}).as<std::int32_t>() == Ints{7, 8, 1, 2, 3, 4});
  CHECK(apply(Concatenate{0}, {x}).as<std::int32_t>() == Ints{1, 2, 3, 4});
  CHECK(apply(Concatenate{1}, {i32({2, 0}, {}), y}).as<std::int32_t>() == Ints{5, 6});
  CHECK(apply(Concatenate{0}, {u8({1, 0}, {}), u8({2, 0}, {})}).type.shape == Shape{3, 0});
}

TEST_CASE("reverse turns any dimensions round", "[ops]") {
  const HostArray x = counting(DType::i32, {2, 3});
  CHECK(apply(Reverse{{0}}, {x}).as<std::int32_t>() == Ints{3, 4, 5, 0, 1, 2});
  CHECK(apply(Reverse{{1}}, {x}).as<std::int32_t>() == Ints{2, 1, 0, 5, 4, 3});
  CHECK(apply(Reverse{{0, 1}}, {x}).as<std::int32_t>() == Ints{5, 4, 3, 2, 1, 0});
  CHECK(apply(Reverse{{}}, {x}).as<std::int32_t>() == Ints{0, 1, 2, 3, 4, 5});
  CHECK(apply(Reverse{{1}}, {counting(DType::u8, {2, 2, 3})}).as<std::uint8_t>() ==
        Bytes{3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8});
  CHECK(apply(Reverse{{0}}, {i32({0, 2}, {})}).bytes.empty());
}

TEST_CASE("rows of every width are taken, added up, cut out and turned round", "[ops]") {
  // Widths that copies know, and others.
  for (std::int64_t width = 1; width <= 9; ++width) {
    for (const DType dtype : {DType::u8, DType::i32, DType::i64}) {
      CAPTURE(width, dtype);
      const HostArray x = counting(dtype, {3, width}), indices = i32({4}, {2, 0, 3, 2});
      const std::size_t row = x.bytes.size() / 3;
      const auto of = [&](const HostArray& a, std::size_t r) {
        const auto at = a.bytes.begin() + static_cast<std::ptrdiff_t>(r * row);
        return std::vector<std::byte>(at, at + static_cast<std::ptrdiff_t>(row));
      };
      const HostArray taken = apply(Gather{}, {x, indices}), turned = apply(Reverse{{0}}, {x});
      const std::vector<std::byte> zeros(row);
      for (std::size_t r = 0; r < 4; ++r) CHECK(of(taken, r) == (r == 2 ? zeros : of(x, r == 1 ? 0 : 2)));
      for (std::size_t r = 0; r < 3; ++r) CHECK(of(turned, r) == of(x, 2 - r));
      CHECK(of(apply(Reverse{{0, 1}}, {turned}), 0) == of(apply(Reverse{{1}}, {x}), 0));
      CHECK(apply(Slice{{0, 0}, {3, width}}, {apply(Concatenate{1}, {x, x})}).bytes == x.bytes);
      const HostArray sums = apply(ScatterAdd{2}, {i32({3}, {1, 0, 1}), x});
      CHECK(of(sums, 0) == of(x, 1));
      CHECK(of(sums, 1) ==
            apply(Add{}, {apply(Slice{{0, 0}, {1, width}}, {x}), apply(Slice{{2, 0}, {3, width}}, {x})}).bytes);
    }
  }
}

TEST_CASE("scatter_add adds rows up by index and leaves out what lies outside", "[ops]") {
  const HostArray updates = f32({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const HostArray sums = apply(ScatterAdd{3}, {i32({4}, {2, 0, 2, 3}), updates});
  CHECK(sums.type.shape == Shape{3, 2});
  CHECK(sums.as<float>() == Floats{3, 4, 0, 0, 6, 8});
  CHECK(apply(ScatterAdd{2}, {i64({2, 2}, {1, 1, -1, 1}), i32({2, 2}, {1, 2, 3, 4})}).as<std::int32_t>() == Ints{0, 7});
  CHECK(apply(ScatterAdd{2}, {i32({}, {1}), f32({3}, {1, 2, 3})}).as<float>() == Floats{0, 0, 0, 1, 2, 3});
  CHECK(apply(ScatterAdd{2}, {i32({0}, {}), f32({0, 1}, {})}).as<float>() == Floats{0, 0});
}

TEST_CASE("scatter puts rows in place of others and leaves out what lies outside", "[ops]") {
  const HostArray table = f32({3, 2}, {1, 2, 3, 4, 5, 6}), rows = f32({3, 2}, {7, 8, 9, 10, 11, 12});
  CHECK(apply(Scatter{}, {table, i32({3}, {2, 3, 0}), rows}).as<float>() == Floats{11, 12, 3, 4, 7, 8});
  CHECK(apply(Scatter{}, {table, i64({3}, {-1, 1, 4}), rows}).as<float>() == Floats{1, 2, 9, 10, 5, 6});
  CHECK(apply(Scatter{}, {table, i32({0}, {}), f32({0, 2}, {})}).bytes == table.bytes);
  CHECK(apply(Scatter{}, {i32({2}, {1, 2}), i32({1}, {1}), i32({1}, {5})}).as<std::int32_t>() == Ints{1, 5});
}

TEST_CASE("first_occurrence finds the first of equal indices, and names each row once", "[ops]") {
  const std::vector<HostArray> found = apply_all(FirstOccurrence{6}, {i32({7}, {4, 0, 4, 6, 0, -1, 5})});
  CHECK(found[0].as<std::int32_t>() == Ints{0, 1, 0, 7, 1, 7, 6});
  CHECK(found[1].as<std::int32_t>() == Ints{4, 0, 6, 6, 6, 6, 5});
  const std::vector<HostArray> wide = apply_all(FirstOccurrence{3}, {i64({2}, {2, 2})});
  CHECK(wide[0].as<std::int64_t>() == std::vector<std::int64_t>{0, 0});
  CHECK(wide[1].as<std::int64_t>() == std::vector<std::int64_t>{2, 3});
  CHECK(apply_all(FirstOccurrence{3}, {i32({0}, {})})[1].bytes.empty());
}

TEST_CASE("cumsum adds up along any dimension, forwards and backwards", "[ops]") {
  const HostArray x = i32({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(apply(Cumsum{1}, {x}).as<std::int32_t>() == Ints{1, 3, 6, 4, 9, 15});
  CHECK(apply(Cumsum{0}, {x}).as<std::int32_t>() == Ints{1, 2, 3, 5, 7, 9});
  CHECK(apply(Cumsum{1, true}, {x}).as<std::int32_t>() == Ints{6, 5, 3, 15, 11, 6});
  CHECK(apply(Cumsum{0, true}, {x}).as<std::int32_t>() == Ints{5, 7, 9, 4, 5, 6});
  CHECK(apply(Cumsum{1}, {i32({2, 0}, {})}).bytes.empty());
}

TEST_CASE("scattering into no rows gives none, and leaves every update out", "[ops]") {
  const HostArray none = apply(ScatterAdd{0}, {i32({2}, {0, 1}), f32({2, 3}, {1, 2, 3, 4, 5, 6})});
  CHECK(none.type.shape == Shape{0, 3});
  CHECK(none.bytes.empty());
}

TEST_CASE("top_k chooses the largest in falling order, the first of equals first", "[ops]") {
  const auto check = [](const HostArray& x, std::int64_t k, const Floats& values, const Ints& indices) {
    const std::vector<HostArray> found = apply_all(TopK{k}, {x});
    CHECK(found[0].as<float>() == values);
    CHECK(found[1].as<std::int32_t>() == indices);
  };
  check(f32({2, 4}, {1, 3, 2, 3, 7, 7, 7, 7}), 2, {3, 3, 7, 7}, {1, 3, 0, 1});
  check(f32({5}, {2, 9, 2, 1, 9}), 5, {9, 9, 2, 2, 1}, {1, 4, 0, 2, 3});
  check(f32({1}, {4}), 1, {4}, {0});
  const std::vector<HostArray> nan = apply_all(TopK{2}, {f32({4}, {1, nan_value, 9, nan_value})});
  CHECK(nan[1].as<std::int32_t>() == Ints{1, 3});

  Ints x(500), order(500);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::int32_t>(i * 7919 % 101);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return x[static_cast<std::size_t>(a)] > x[static_cast<std::size_t>(b)];
  });
  for (const std::size_t k : {std::size_t{1}, std::size_t{17}, std::size_t{500}}) {
    CHECK(apply_all(TopK{static_cast<std::int64_t>(k)}, {i32({500}, x)})[1].as<std::int32_t>() ==
          Ints(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k)));
  }
}

#ifndef PMAPTRAIN_REFERENCE_KERNELS
TEST_CASE("many of the largest are chosen by keys as by comparisons", "[ops]") {
  const auto floats = [](std::int64_t n, std::uint32_t spread) {
    Floats x(static_cast<std::size_t>(n));
    const float special[] = {nan_value,
                             -nan_value,
                             0.0F,
                             -0.0F,
                             std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity(),
                             1e-45F,
                             -1e-45F};
    std::uint32_t state = spread;
    for (float& v : x) {
      state = state * 1664525u + 1013904223u;
      v = state >> 28 == 0 ? special[(state >> 16) % 8] : static_cast<float>((state >> 8) % spread) - 50.0F;
    }
    return x;
  };
  const auto whole = [&](DType dtype, std::int64_t n) {
    HostArray x{type(dtype, {2, 3, n}), {}};
    const Floats from = floats(6 * n, 900);
    for (const float v : from) {
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(v);
      const auto* const at = reinterpret_cast<const std::byte*>(&bits);
      x.bytes.insert(x.bytes.end(), at, at + sizeof bits);
    }
    return x;
  };
  for (const auto& [n, k] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {64, 64}, {65, 64}, {383, 64}, {384, 64}, {385, 64}, {1000, 100}, {1000, 999}, {5000, 300}}) {
    for (const HostArray& x : {f32({2, 3, n}, floats(6 * n, 1000000)), f32({2, 3, n}, floats(6 * n, 7)),
                               whole(DType::i32, n), whole(DType::u32, n)}) {
      CAPTURE(n, k, x.type.dtype);
      const std::vector<HostArray> expected = apply_all(TopK{k}, {x});
      // Two devices of three rows each.
      const std::vector<Type> operands = {type(x.type.dtype, {3, n})};
      const std::vector<Type> results = {type(x.type.dtype, {3, k}), type(DType::i32, {3, k})};
      const auto kernel = TopK{k}.cpu({operands, results, 2, {true}});
      REQUIRE(kernel != nullptr);
      std::vector<std::uint64_t> scratch(kernel->scratch_bytes() / sizeof(std::uint64_t));
      std::vector<std::byte> values(expected[0].bytes.size()), indices(expected[1].bytes.size());
      const std::byte* from[] = {x.bytes.data()};
      std::byte* to[] = {values.data(), indices.data()};
      kernel->run({from, to, reinterpret_cast<std::byte*>(scratch.data())});
      CHECK(values == expected[0].bytes);
      CHECK(indices == expected[1].bytes);
    }
  }
  CHECK(TopK{63}.cpu({std::vector{type(DType::f32, {64})}, std::vector{type(DType::f32, {63})}, 1, {true}}) == nullptr);
}
#endif

TEST_CASE("bernoulli values are uniform values below the probability", "[ops]") {
  const HostArray key = u32({2}, {7, 9}), rows = i64({3}, {4, 5, 600});
  const Floats uniform = apply(RandomUniform{{50}}, {key, rows}).as<float>();
  for (const double probability : {0.0, 0.3, 1.0}) {
    const Bytes found = apply(RandomBernoulli{{50}, probability}, {key, rows}).as<std::uint8_t>();
    for (std::size_t i = 0; i < found.size(); ++i) CHECK((found[i] != 0) == (uniform[i] < probability));
  }
}

#ifndef PMAPTRAIN_REFERENCE_KERNELS
TEST_CASE("random values by vectors have the bits of single ones on every instruction set", "[ops]") {
  // Rows shorter and longer than vectors and than a block of counters, and numbers of rows beyond 32 bits.
  const std::int64_t far = (std::int64_t{5} << 32) + 3;
  const HostArray key = u32({2}, {7, 0xffffffffu}), rows = i64({4}, {4, far, -1, 600});
  for (const Shape& shape : {Shape{}, {1}, {3}, {17}, {5, 31}, {513}, {1024}, {0}}) {
    INFO(to_string(shape));
    for (const Op& op :
         std::vector<Op>{RandomUniform{shape}, RandomNormal{shape}, RandomBernoulli{shape, 0.0},
                         RandomBernoulli{shape, 0.3}, RandomBernoulli{shape, 0x1.8p-24}, RandomBernoulli{shape, 1.0}}) {
      const HostArray expected = apply(op, {key, rows});
      on_every_target([&] {
        std::string implementation;
        // Two devices of two rows each.
        const HostArray half = i64({2}, {0, 0});
        HostArray both = rows;
        both.type = half.type;
        CHECK(apply_stacked(op, {key, both}, 2, {false, true}, &implementation).bytes == expected.bytes);
        CHECK(implementation == "Philox by vectors");
      });
    }
  }
}
#endif

TEST_CASE("a random permutation has every number once, by the words of its row alone", "[ops]") {
  const HostArray key = u32({2}, {7, 9});
  const Ints found = apply(RandomPermutation{6}, {key, i64({2}, {4, 5})}).as<std::int32_t>();
  CHECK(Ints(found.begin() + 6, found.end()) == apply(RandomPermutation{6}, {key, i64({1}, {5})}).as<std::int32_t>());
  Ints expected = {0, 1, 2, 3, 4, 5};
  for (std::uint32_t e = 1; e < 6; ++e) {
    const std::uint64_t word = philox4x32({7, 9}, {4, 0, e, 0})[0];
    std::swap(expected[e], expected[(word * (e + 1)) >> 32]);
  }
  CHECK(Ints(found.begin(), found.begin() + 6) == expected);

  // Over many rows each number comes to each place about equally often: 1000 of 3000 in 3 places, deviation 26.
  std::vector<std::int64_t> many(3000);
  std::iota(many.begin(), many.end(), 0);
  const Ints orders = apply(RandomPermutation{3}, {key, i64({3000}, many)}).as<std::int32_t>();
  std::vector<int> counts(9);
  for (std::size_t i = 0; i < orders.size(); ++i) ++counts[i % 3 * 3 + static_cast<std::size_t>(orders[i])];
  for (const int count : counts) CHECK(std::abs(count - 1000) < 130);
}

TEST_CASE("joining, scattering, running sums and choosing say what does not fit", "[ops]") {
  const Type x = type(DType::f32, {2, 6});
  CHECK(refusal_of(Concatenate{0}, {}) == "concatenate: of nothing (it takes one operand or more)");
  CHECK(refusal_of(Concatenate{2}, {x}) == "concatenate: there is no dimension 2 among 2 (dimensions are 0 to 1)");
  CHECK(refusal_of(Concatenate{0}, {x, type(DType::f32, {2, 5})}) ==
        "concatenate: f32[2,5] does not continue f32[2,6] along dimension 0 (operands have one element type and, but "
        "for that dimension, one shape)");
  CHECK(refusal_of(Concatenate{0}, {x, type(DType::i32, {2, 6})}) ==
        "concatenate: i32[2,6] does not continue f32[2,6] along dimension 0 (operands have one element type and, but "
        "for that dimension, one shape)");
  CHECK(refusal_of(Reverse{{1, 0}}, {x}) ==
        "reverse: dims=[1,0] does not rise: 0 stands behind 1 (their order means nothing here: write dims=[0,1])");
  CHECK(refusal_of(ScatterAdd{3}, {type(DType::i32, {3}), x}) ==
        "scatter_add: updates f32[2,6] do not begin with the dimensions of the indices i32[3] (indices are [I...] and "
        "updates [I..., rest...])");
  CHECK(refusal_of(ScatterAdd{-1}, {type(DType::i32, {2}), type(DType::f32, {2, 6})}) ==
        "scatter_add: rows is -1 (the result has 0 rows or more)");
  CHECK(refusal_of(ScatterAdd{3}, {type(DType::f32, {2}), x}) ==
        "scatter_add: its indices must be i32 or i64, not f32[2] (cast them to i32 or i64)");
  CHECK(refusal_of(Scatter{}, {x, type(DType::i32, {3}), type(DType::f32, {3, 5})}) ==
        "scatter: a table f32[2,6], indices i32[3] and rows f32[3,5] do not fit (a table is [V, rest...], its indices "
        "are [n], and its rows [n, rest...] of its element type)");
  CHECK(refusal_of(FirstOccurrence{3}, {type(DType::i32, {2, 6})}) ==
        "first_occurrence: its indices i32[2,6] are not of one dimension (reshape them to [n])");
  CHECK(refusal_of(FirstOccurrence{-1}, {type(DType::i32, {2})}) ==
        "first_occurrence: rows is -1 (the indices name 0 rows or more)");
  CHECK(refusal_of(Cumsum{2}, {x}) == "cumsum: there is no dimension 2 among 2 (dimensions are 0 to 1)");
  CHECK(refusal_of(TopK{7}, {x}) == "top_k: the 7 largest of 6 elements (1 <= k <= n, and n is below 2^31)");
  CHECK(refusal_of(TopK{1}, {type(DType::f32, {})}) ==
        "top_k: f32[] has no dimension to choose along (its operand is [..., n])");
  const Type key = type(DType::u32, {2}), rows = type(DType::i64, {2});
  CHECK(refusal_of(RandomBernoulli{{}, 1.5}, {key, rows}) ==
        "random_bernoulli: the probability is 1.5 (it lies from 0 to 1)");
  CHECK(refusal_of(RandomPermutation{0}, {key, rows}) ==
        "random_permutation: the size is 0 (it is at least 1 and below 2^31)");
}

}  // namespace
}  // namespace pmaptrain
