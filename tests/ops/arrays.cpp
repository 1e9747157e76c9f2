// Ops that move, reduce, index or draw elements.
#include "tests/arrays.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "core/base/philox.h"
#include "core/ops/all.h"
#include "core/ops/list.h"
#include "tests/catch.h"

namespace pmaptrain {
namespace {

using namespace ops;
using namespace test;

using Floats = std::vector<float>;
using Ints = std::vector<std::int32_t>;
using Dims = std::vector<std::int64_t>;

// The index of element number `element` of a shape, and back.
Dims index_of(std::int64_t element, const Shape& shape) {
  Dims index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = element % shape[d];
    element /= shape[d];
  }
  return index;
}

std::int64_t element_at(const Dims& index, const Shape& shape) {
  std::int64_t element = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) element = element * shape[d] + index[d];
  return element;
}

// Checks that element `e` of the op on 0, 1, 2, ... is the operand's element source(index of e), or 0 where negative.
template <class Source>
void check_moves(const Op& op, const Shape& shape, Source source) {
  for (DType dtype : {DType::f32, DType::i64, DType::u8}) {
    const HostArray found = apply(op, {counting(dtype, shape)});
    const Shape& result = found.type.shape;
    INFO(to_string(op) << " of " << to_string(found.type.dtype) << to_string(shape));
    dispatch(dtype, [&]<class T>() {
      std::vector<T> expected;
      for (std::int64_t e = 0; e < numel(result); ++e) {
        expected.push_back(static_cast<T>(std::max<std::int64_t>(0, source(index_of(e, result)))));
      }
      if constexpr (!std::is_same_v<T, bool>) CHECK(found.as<T>() == expected);
    });
  }
}

}  // namespace

TEST_CASE("transpose moves every element to its place", "[ops]") {
  for (const auto& [shape, permutation] : std::vector<std::pair<Shape, Dims>>{{{}, {}},
                                                                              {{5}, {0}},
                                                                              {{3, 4}, {1, 0}},
                                                                              {{3, 4}, {0, 1}},
                                                                              {{2, 3, 4}, {0, 2, 1}},
                                                                              {{2, 3, 4}, {1, 0, 2}},
                                                                              {{2, 3, 4}, {2, 0, 1}},
                                                                              {{2, 3, 4}, {2, 1, 0}},
                                                                              {{2, 3, 4, 5}, {3, 1, 0, 2}},
                                                                              {{2, 1, 4, 5}, {3, 2, 1, 0}},
                                                                              {{35, 50}, {1, 0}},
                                                                              {{2, 17, 3, 19}, {0, 3, 1, 2}},
                                                                              {{1, 1, 4}, {2, 0, 1}},
                                                                              {{0, 3}, {1, 0}}}) {
    check_moves(Transpose{permutation}, shape, [&, s = shape, p = permutation](const Dims& index) {
      Dims from(s.size());
      for (std::size_t i = 0; i < p.size(); ++i) from[static_cast<std::size_t>(p[i])] = index[i];
      return element_at(from, s);
    });
  }
}

TEST_CASE("broadcast repeats along every new dimension", "[ops]") {
  for (const auto& [shape, result, dims] :
       std::vector<std::tuple<Shape, Shape, Dims>>{{{}, {3, 2}, {}},
                                                   {{4}, {3, 4}, {1}},
                                                   {{4}, {4, 3}, {0}},
                                                   {{10}, {3, 5, 7, 10}, {3}},
                                                   {{2, 3}, {2, 4, 3}, {0, 2}},
                                                   {{2, 3}, {5, 2, 4, 3, 2}, {1, 3}},
                                                   {{1, 3}, {1, 2, 3}, {0, 2}},
                                                   {{3}, {0, 3}, {1}},
                                                   {{2, 2}, {2, 2}, {0, 1}},
                                                   {{}, {5000}, {}},
                                                   {{3}, {4000, 3}, {1}}}) {
    check_moves(Broadcast{result, dims}, shape, [&, s = shape, d = dims](const Dims& index) {
      Dims from;
      for (std::int64_t dim : d) from.push_back(index[static_cast<std::size_t>(dim)]);
      return element_at(from, s);
    });
  }
}

TEST_CASE("slice takes a box out and pad puts zeros around", "[ops]") {
  check_moves(Slice{{1, 0, 2}, {3, 2, 5}}, {4, 2, 6}, [](const Dims& i) {
    return element_at({i[0] + 1, i[1], i[2] + 2}, {4, 2, 6});
  });
  check_moves(Slice{{1, 0}, {3, 5}}, {4, 5}, [](const Dims& i) { return element_at({i[0] + 1, i[1]}, {4, 5}); });
  check_moves(Slice{{2}, {2}}, {4}, [](const Dims&) { return 0; });
  check_moves(Slice{{}, {}}, {}, [](const Dims&) { return 0; });
  check_moves(Pad{{1, 0, 2}, {0, 0, 1}}, {2, 2, 3}, [](const Dims& i) {
    const bool inside = i[0] >= 1 && i[2] >= 2 && i[2] < 5;
    return inside ? element_at({i[0] - 1, i[1], i[2] - 2}, {2, 2, 3}) : std::int64_t{-1};
  });
  check_moves(Pad{{2}, {1}}, {0}, [](const Dims&) { return -1; });
  check_moves(Reshape{{3, 4}}, {2, 6}, [](const Dims& i) { return element_at(i, {3, 4}); });
}

TEST_CASE("sums and maxima over any dimensions agree with a direct loop", "[ops]") {
  for (const auto& [shape, dims] : std::vector<std::pair<Shape, Dims>>{{{}, {}},
                                                                       {{7}, {0}},
                                                                       {{7}, {}},
                                                                       {{5000}, {0}},
                                                                       {{3, 1000}, {1}},
                                                                       {{1000, 3}, {0}},
                                                                       {{1000, 300}, {0}},
                                                                       {{4, 5, 6}, {1}},
                                                                       {{4, 5, 6}, {0, 2}},
                                                                       {{4, 5, 6}, {0, 1, 2}},
                                                                       {{2, 3, 4, 5, 6}, {1, 3}},
                                                                       {{2, 3, 4, 5, 6}, {0, 2, 4}},
                                                                       {{3, 1, 4}, {1}},
                                                                       {{9, 10, 11, 16}, {0, 1, 2}},
                                                                       {{64, 10}, {1}},
                                                                       {{33, 129}, {0}},
                                                                       {{1000, 1}, {0}}}) {
    HostArray x = counting(DType::i64, shape);
    auto values = x.as<std::int64_t>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i * 7919 % 1009) - 500;
    x = i64(shape, values);
    const HostArray sum = apply(ReduceSum{dims}, {x}), max = apply(ReduceMax{dims}, {x});
    const HostArray float_sum = apply(ReduceSum{dims}, {apply(Cast{DType::f32}, {x})});
    std::vector<std::int64_t> sums(static_cast<std::size_t>(numel(sum.type)), 0), maxima(sums.size(), -1000);
    for (std::int64_t e = 0; e < numel(shape); ++e) {
      const Dims index = index_of(e, shape);
      Dims kept;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        if (std::find(dims.begin(), dims.end(), static_cast<std::int64_t>(d)) == dims.end()) kept.push_back(index[d]);
      }
      const auto to = static_cast<std::size_t>(element_at(kept, sum.type.shape));
      sums[to] += values[static_cast<std::size_t>(e)];
      maxima[to] = std::max(maxima[to], values[static_cast<std::size_t>(e)]);
    }
    INFO(to_string(shape) << " over " << to_string(dims));
    CHECK(sum.as<std::int64_t>() == sums);
    CHECK(max.as<std::int64_t>() == maxima);
    // Whole numbers below 2^24 add without rounding, in every order.
    CHECK(float_sum.as<float>() == Floats(sums.begin(), sums.end()));
  }
}

TEST_CASE("a long sum of f32 stays close to exact", "[ops]") {
  constexpr std::int64_t n = 1 << 20;
  const HostArray tenth = f32({n}, Floats(n, 0.1F));
  const double exact_sum = static_cast<double>(0.1F) * n;
  CHECK(apply(ReduceSum{{0}}, {tenth}).as<float>()[0] == Approx(exact_sum).epsilon(1e-5));
  HostArray rows = tenth;
  rows.type.shape = {n / 4, 4};
  for (float sum : apply(ReduceSum{{0}}, {rows}).as<float>()) CHECK(sum == Approx(exact_sum / 4).epsilon(1e-5));
}

TEST_CASE("a reduction keeps NaNs, and nothing sums to zero", "[ops]") {
  CHECK(std::isnan(apply(ReduceMax{{0}}, {f32({3}, {1, nan_value, 2})}).as<float>()[0]));
  CHECK(std::isnan(apply(ReduceMax{{0}}, {f32({3, 2}, {1, 1, nan_value, 1, 2, 1})}).as<float>()[0]));
  CHECK(apply(ReduceSum{{0}}, {f32({0, 2}, {})}).as<float>() == Floats{0, 0});
  CHECK(apply(ReduceMax{{0}}, {u8({2}, {3, 9})}).as<std::uint8_t>() == std::vector<std::uint8_t>{9});
}

TEST_CASE("a reduction of all elements has the reference's bits, for every type and number of elements", "[ops]") {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8, DType::u32}) {
    for (const std::int64_t n : {1, 2, 15, 16, 17, 63, 64, 65, 128, 20000}) {
      for (const bool has_nan : {false, true}) {
        CAPTURE(dtype, n, has_nan);
        Floats values;
        for (std::int64_t i = 0; i < 2 * n; ++i) values.push_back(std::sin(static_cast<float>(i)) * 100.0F);
        values[static_cast<std::size_t>(n)] = -0.0F;
        if (has_nan) values[static_cast<std::size_t>(n / 2)] = nan_value;
        const HostArray both = apply(Cast{dtype}, {f32({2 * n}, values)});
        const auto check = [&](const Op& op) {
          const HostArray found = apply_stacked(op, {{{dtype, {n}, {}}, both.bytes}}, 2, {true});
          std::vector<std::byte> expected;
          for (const std::int64_t first : {std::int64_t{0}, n}) {
            const auto begin = both.bytes.begin() + first * static_cast<std::int64_t>(size_of(dtype));
            const auto end = begin + n * static_cast<std::int64_t>(size_of(dtype));
            const HostArray one = apply(op, {{{dtype, {n}, {}}, {begin, end}}});
            expected.insert(expected.end(), one.bytes.begin(), one.bytes.end());
          }
          CHECK(found.bytes == expected);
        };
        check(ReduceSum{{0}});
        check(ReduceMax{{0}});
      }
    }
  }
}

TEST_CASE("a reduction of stacked devices has the bits of each device alone", "[ops]") {
  Floats values(3 * 50 * 7);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  const Floats together = apply_stacked(ReduceSum{{0}}, {f32({50, 7}, values)}, 3, {true}).as<float>();
  for (std::size_t d = 0; d < 3; ++d) {
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(d * 350);
    const Floats alone = apply(ReduceSum{{0}}, {f32({50, 7}, Floats(from, from + 350))}).as<float>();
    CHECK(std::equal(alone.begin(), alone.end(), together.begin() + static_cast<std::ptrdiff_t>(d * 7)));
  }
}

TEST_CASE("argmax is the first of equals along any dimension", "[ops]") {
  const HostArray x = f32({2, 3}, {1, 5, 5, 7, 2, 7});
  CHECK(apply(Argmax{1}, {x}).as<std::int32_t>() == Ints{1, 0});
  CHECK(apply(Argmax{0}, {x}).as<std::int32_t>() == Ints{1, 0, 1});
  CHECK(apply(Argmax{0}, {f32({4}, {1, nan_value, 9, nan_value})}).as<std::int32_t>() == Ints{1});

  // Along the last dimension as along the first: one is done by vectors, the other element by element.
  const float inf = std::numeric_limits<float>::infinity();
  for (const std::int64_t size : {1, 2, 63, 64, 65, 128, 1000}) {
    const auto n = static_cast<std::size_t>(size);
    for (const Floats& kinds :
         {Floats{1, 2, 3}, {-0.0F, 0}, {0, -0.0F}, {-inf}, {-inf, nan_value}, {1, nan_value, 2}}) {
      Floats row(n), twice;
      for (std::size_t i = 0; i < n; ++i) row[i] = kinds[i * 7919 % 1009 % kinds.size()];
      for (const float value : row) twice.insert(twice.end(), 2, value);
      const Ints last = apply(Argmax{0}, {f32({size}, row)}).as<std::int32_t>();
      INFO(size << " elements from " << kinds.front());
      CHECK(apply(Argmax{0}, {f32({size, 2}, twice)}).as<std::int32_t>() == Ints{last[0], last[0]});
    }
    Ints whole(n, -7);
    whole.back() = 5;
    CHECK(apply(Argmax{0}, {i32({size}, whole)}).as<std::int32_t>() == Ints{static_cast<std::int32_t>(size - 1)});
  }
}

TEST_CASE("a sum over nothing is 0 and not -0, whatever kernel makes it", "[ops]") {
  const auto check = [](const HostArray& found) {
    for (const float sum : found.as<float>()) CHECK(std::bit_cast<std::uint32_t>(sum) == 0);
  };
  for (const auto& [shape, dims] : std::vector<std::pair<Shape, Dims>>{{{0}, {0}}, {{0, 2}, {0}}, {{1, 0}, {1}}}) {
    check(apply(ReduceSum{dims}, {f32(shape, {})}));
    check(apply_stacked(ReduceSum{dims}, {f32(shape, {})}, 3, {true}));
    check(apply_stacked(ReduceSum{dims}, {f32(shape, {})}, 3, {false}));
  }
}

TEST_CASE("gather takes rows and gives zeros outside of the table", "[ops]") {
  const HostArray table = f32({3, 2}, {1, 2, 3, 4, 5, 6});
  const HostArray rows = apply(Gather{}, {table, i32({2, 2}, {2, 0, -1, 3})});
  CHECK(rows.type.shape == Shape{2, 2, 2});
  CHECK(rows.as<float>() == Floats{5, 6, 1, 2, 0, 0, 0, 0});
  CHECK(apply(Gather{}, {table, i64({}, {1})}).as<float>() == Floats{3, 4});
}

TEST_CASE("one_hot, iota and constant fill as they say", "[ops]") {
  CHECK(apply(OneHot{3, DType::f32}, {i32({4}, {0, 2, -1, 3})}).as<float>() ==
        Floats{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0});
  CHECK(apply(Iota{DType::i32, {2, 3}, 1}, {}).as<std::int32_t>() == Ints{0, 1, 2, 0, 1, 2});
  CHECK(apply(Iota{DType::i32, {2, 3}, 0}, {}).as<std::int32_t>() == Ints{0, 0, 0, 1, 1, 1});
  CHECK(apply(Constant{DType::f32, {2}, 0.1}, {}).as<float>() == Floats{0.1F, 0.1F});
  CHECK(apply(Constant{DType::i64, {}, -3}, {}).as<std::int64_t>() == std::vector<std::int64_t>{-3});
  CHECK(apply(Constant{DType::f32, {2, 2}, 0, {0.1, 2, -1, 4}}, {}).as<float>() == Floats{0.1F, 2, -1, 4});
}

TEST_CASE("random values depend on the key, the row and the element alone", "[ops]") {
  const HostArray key = u32({2}, {7, 9});
  const std::int64_t far = (std::int64_t{5} << 32) + 3;
  const Floats some = apply(RandomUniform{{2, 3}}, {key, i64({3}, {4, far, 0})}).as<float>();
  const Floats other = apply(RandomUniform{{6}}, {key, i64({2}, {far, 11})}).as<float>();
  CHECK(std::equal(other.begin(), other.begin() + 6, some.begin() + 6));
  const Floats normals = apply(RandomNormal{{2}}, {key, i64({1}, {far})}).as<float>();
  for (std::uint32_t e = 0; e < 2; ++e) {
    const auto words = philox4x32({7, 9}, {3, 5, e, 0});
    CHECK(other[e] == uniform_from_bits(words[0]));
    CHECK(normals[e] == normal_from_bits(words[0], words[1]));
  }
  CHECK(apply(RandomUniform{}, {key, i64({2}, {0, 1})}).type.shape == Shape{2});
}

TEST_CASE("ops on shapes say what does not fit", "[ops]") {
  const Type x = type(DType::f32, {2, 6});
  CHECK(refusal_of(Reshape{{3, 5}}, {x}) ==
        "reshape: f32[2,6] has 12 elements and [3,5] has 15 (reshape keeps the number of elements; slice, pad or "
        "broadcast changes it)");
  CHECK(refusal_of(Transpose{{0, 0}}, {x}) ==
        "transpose: [0,0] is not a permutation of the dimensions of f32[2,6] (name each of its 2 dimensions once)");
  CHECK(refusal_of(Broadcast{{3, 4}, {1}}, {type(DType::f32, {3})}) ==
        "broadcast: dimension 0 of f32[3] has size 3 and would become dimension 1 of [3,4], of size 4 (the two sizes "
        "are equal; reshape a dimension of size 1 away to repeat along it)");
  CHECK(refusal_of(Broadcast{{3, 4}, {}}, {type(DType::f32, {3})}) ==
        "broadcast: dims=[] names 0 dimensions for f32[3], which has 1 (dims[i] is the result's dimension that the "
        "operand's dimension i becomes)");
  CHECK(refusal_of(Slice{{0, 4}, {2, 7}}, {x}) ==
        "slice: 4 to 7 does not lie in dimension 1 of f32[2,6] (0 <= start <= limit <= 6)");
  CHECK(refusal_of(Pad{{0, -1}, {0, 0}}, {x}) ==
        "pad: -1 before and 0 after dimension 1 of f32[2,6]: one is negative (slice takes elements away)");
  CHECK(refusal_of(ReduceSum{{2}}, {x}) == "reduce_sum: there is no dimension 2 among 2 (dimensions are 0 to 1)");
  CHECK(refusal_of(ReduceSum{{1, 0}}, {x}) ==
        "reduce_sum: dims=[1,0] does not rise: 0 stands behind 1 (their order means nothing here: write dims=[0,1])");
  CHECK(refusal_of(ReduceMax{{0, 1, 1}}, {x}) ==
        "reduce_max: dims=[0,1,1] does not rise: 1 stands twice (their order means nothing here: write dims=[0,1])");
  CHECK(refusal_of(Broadcast{{6, 2}, {1, 0}}, {x}) ==
        "broadcast: dims=[1,0] does not rise: 0 stands behind 1 (transpose the operand first: broadcast keeps its "
        "dimensions in order)");
  CHECK(refusal_of(ReduceMax{{0}}, {type(DType::f32, {0, 2})}) ==
        "reduce_max: f32[0,2] has no elements along dimension 0 (the maximum of no elements is undefined)");
  CHECK(refusal_of(ReduceSum{{0}}, {type(DType::boolean, {2})}) ==
        "reduce_sum: works on numbers, not on bool (cast a bool to a number: 0 or 1)");
  CHECK(refusal_of(ReduceSum{{0}}, {type(DType::f32, {1, 1, 1, 1, 1, 1, 1, 1, 1})}) ==
        "reduce_sum: [1,1,1,1,1,1,1,1,1] has 9 dimensions, and 8 are supported (reshape neighbouring dimensions into "
        "one)");
  CHECK(refusal_of(Gather{}, {x, type(DType::f32, {2})}) ==
        "gather: its indices must be i32 or i64, not f32[2] (cast them to i32 or i64)");
  CHECK(refusal_of(OneHot{0, DType::f32}, {type(DType::i32, {2})}) ==
        "one_hot: depth is 0 (depth is the number of classes, at least 1)");
  CHECK(refusal_of(Constant{DType::i32, {}, 1.5}, {}) ==
        "constant: 1.5 is not a value of i32 (a bool is 0 or 1, an integer has no fraction, and each type has its "
        "range)");
  CHECK(refusal_of(Constant{DType::boolean, {2}, 0, {1, 2}}, {}) ==
        "constant: 2.0 is not a value of bool (a bool is 0 or 1, an integer has no fraction, and each type has its "
        "range)");
  CHECK(refusal_of(Constant{DType::f32, {3}, 0, {1, 2}}, {}) ==
        "constant: 2 values for 3 elements of shape [3] (values has a number for each element, in row-major order; "
        "value is one number for all)");
  CHECK(refusal_of(Constant{DType::f32, {2}, 3, {1, 2}}, {}) ==
        "constant: both value and values are given (value is one number for all elements, values has one for each)");
  CHECK(refusal_of(Iota{DType::u8, {3, 258}, 1}, {}) ==
        "iota: u8 does not hold the 258 indices of dimension 1 of [3,258] (it holds every whole number up to 255; i64 "
        "holds more)");
  CHECK(refusal_of(Iota{DType::f32, {16'777'218}, 0}, {}) ==
        "iota: f32 does not hold the 16777218 indices of dimension 0 of [16777218] (it holds every whole number up to "
        "16777216; i64 holds more)");
  for (const auto& [dtype, size] : std::vector<std::pair<DType, std::int64_t>>{
           {DType::u8, 256}, {DType::f32, 16'777'217}, {DType::i32, std::int64_t{1} << 31}, {DType::i64, 1}}) {
    CHECK(refusal_of(Iota{dtype, {size}, 0}, {}) == "accepted");
  }
  CHECK(refusal_of(Psum{AxisSet::of(3)}, {x}) ==
        "psum works over an axis that the mesh does not have (the mesh has no axes)");
  CHECK(refusal_of(RandomUniform{}, {type(DType::u32, {4}), type(DType::i64, {2})}) ==
        "random_uniform: its key is u32[4], not u32[2] (a key is made of the seed and a stream's name)");
}

}  // namespace pmaptrain
