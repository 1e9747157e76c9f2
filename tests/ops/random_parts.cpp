// Random values of a part of each row: as columns, rows of a kernel or heads that an axis of the mesh divides.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/ops/list.h"
#include "tests/arrays.h"
#include "tests/catch.h"
#include "tests/ops/targets.h"

namespace pmaptrain {
namespace {

using namespace ops;
using namespace test;

using Numbers = std::vector<std::int64_t>;

std::vector<Op> ops_of(const Shape& shape, const Numbers& strides) {
  return {RandomUniform{shape, strides}, RandomNormal{shape, strides}, RandomBernoulli{shape, 0.3, strides}};
}

Numbers strides_of(const Shape& shape) {
  Numbers strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

// A box of the undivided row.
struct Part {
  Numbers starts, limits;

  Shape shape() const {
    Shape sizes;
    for (std::size_t d = 0; d < starts.size(); ++d) sizes.push_back(limits[d] - starts[d]);
    return sizes;
  }
  std::int64_t offset(const Numbers& strides) const {
    std::int64_t sum = 0;
    for (std::size_t d = 0; d < starts.size(); ++d) sum += starts[d] * strides[d];
    return sum;
  }
};

// The parts of a division of dimension `dim`, as equal as its size allows; of their other dimensions those of `within`.
std::vector<Part> divided(const Part& within, std::size_t dim, std::int64_t parts) {
  std::vector<Part> all(static_cast<std::size_t>(parts), within);
  const std::int64_t size = within.limits[dim] - within.starts[dim];
  for (std::int64_t p = 0; p < parts; ++p) {
    Part& part = all[static_cast<std::size_t>(p)];
    part.limits[dim] = within.starts[dim] + (p + 1) * size / parts;
    part.starts[dim] = within.starts[dim] + p * size / parts;
  }
  return all;
}

// Of rows [B, ...] of the undivided array.
HostArray slice_of(const HostArray& rows, const Part& part) {
  Numbers starts = part.starts, limits = part.limits;
  starts.insert(starts.begin(), 0);
  limits.insert(limits.begin(), rows.type.shape[0]);
  return apply(Slice{starts, limits}, {rows});
}

const HostArray key = u32({2}, {7, 0xffffffffu}), rows = i64({3}, {4, (std::int64_t{5} << 32) + 3, -1});

// The last has rows longer than a block of counters.
const std::vector<Shape> shapes = {{12}, {6, 10}, {3, 4, 10}, {2, 1, 3, 5}, {40, 1, 33}, {3, 700}};

// Calls check(shape, part) for parts along each dimension, and along it and the first one.
template <class Check>
void for_each_part(const Check& check) {
  for (const Shape& shape : shapes) {
    const Part whole{Numbers(shape.size(), 0), shape};
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
      for (const std::int64_t parts : {1, 2, 3, 5}) {
        for (const Part& part : divided(whole, dim, parts)) {
          check(shape, part);
          if (dim == 0) continue;
          for (const Part& smaller : divided(part, 0, 2)) check(shape, smaller);
        }
      }
    }
  }
}

TEST_CASE("a part of each row has the random values of the undivided rows, however they are divided", "[ops]") {
  for_each_part([](const Shape& shape, const Part& part) {
    INFO(to_string(shape) << " from " << to_string(part.starts) << " to " << to_string(part.limits));
    const Numbers strides = strides_of(shape);
    const std::vector<Op> undivided = ops_of(shape, {}), divided = ops_of(part.shape(), strides);
    const std::int64_t offset = part.offset(strides);
    for (std::size_t i = 0; i < divided.size(); ++i) {
      const HostArray expected = slice_of(apply(undivided[i], {key, rows}), part);
      CHECK(apply(divided[i], {key, rows, i64({}, {offset})}).bytes == expected.bytes);
      const HostArray narrow = i32({}, {static_cast<std::int32_t>(offset)});
      CHECK(apply_stacked(divided[i], {key, rows, narrow}, 1, {true, true, true}).bytes == expected.bytes);
    }
  });
}

TEST_CASE("without strides the elements of a row follow the offset, which counts modulo 2^32", "[ops]") {
  const Part last{{7}, {12}};
  for (std::size_t i = 0; i < 3; ++i) {
    const HostArray expected = slice_of(apply(ops_of({12}, {})[i], {key, rows}), last);
    const Op op = ops_of({5}, {})[i];
    for (const std::int64_t offset : {std::int64_t{7}, 7 + (std::int64_t{3} << 32), 7 - (std::int64_t{1} << 32)}) {
      CHECK(apply(op, {key, rows, i64({}, {offset})}).bytes == expected.bytes);
      CHECK(apply_stacked(op, {key, rows, i64({}, {offset})}, 1, {true, true, true}).bytes == expected.bytes);
    }
  }
}

TEST_CASE("a part without elements draws nothing, whatever its strides are", "[ops]") {
  const std::int64_t far = (std::int64_t{1} << 32) - 1;
  for (const Op& op : ops_of({0, 300'000'000'000}, {1, far})) {
    CHECK(apply(op, {key, rows, i64({}, {0})}).bytes.empty());
    CHECK(apply_stacked(op, {key, rows, i64({}, {0})}, 1, {true, true, true}).bytes.empty());
  }
}

#ifndef PMAPTRAIN_REFERENCE_KERNELS
TEST_CASE("each device of a call draws its part of the rows, on every instruction set", "[ops]") {
  for (const Shape& shape : shapes) {
    const Numbers strides = strides_of(shape);
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
      for (const std::int64_t parts : {2, 3}) {
        if (shape[dim] % parts != 0) continue;
        INFO(to_string(shape) << ", dimension " << dim << " in " << parts);
        const std::vector<Part> all = divided({Numbers(shape.size(), 0), shape}, dim, parts);
        Numbers offsets;
        for (const Part& part : all) offsets.push_back(part.offset(strides));
        HostArray stacked = i64({parts}, offsets);
        stacked.type.shape = {};
        const std::vector<Op> undivided = ops_of(shape, {}), divided = ops_of(all[0].shape(), strides);
        for (std::size_t i = 0; i < divided.size(); ++i) {
          const HostArray whole = apply(undivided[i], {key, rows});
          std::vector<std::byte> expected;
          for (const Part& part : all) {
            const std::vector<std::byte> bytes = slice_of(whole, part).bytes;
            expected.insert(expected.end(), bytes.begin(), bytes.end());
          }
          on_every_target([&] {
            std::string implementation;
            CHECK(apply_stacked(divided[i], {key, rows, stacked}, parts, {false, false, true}, &implementation).bytes ==
                  expected);
            CHECK(implementation == "Philox by vectors");
          });
        }
      }
    }
  }
}
#endif

TEST_CASE("a part of a row of random values says what does not fit", "[ops]") {
  const Type words = type(DType::u32, {2}), numbers = type(DType::i64, {2}), offset = type(DType::i32, {});
  const auto refused = [&](const Shape& shape, const Numbers& strides) {
    return refusal_of(RandomNormal{shape, strides}, {words, numbers, offset});
  };
  CHECK(refused({4, 3}, {6, 1}) == "accepted");
  CHECK(refused({3, 4}, {1, 3}) == "accepted");
  CHECK(refused({4, 0}, {1, 1}) == "accepted");
  CHECK(refused({2, 1}, {(std::int64_t{1} << 32) - 1, 1}) == "accepted");
  CHECK(refused({4, 3}, {1}) ==
        "random_normal: strides [1] for shape [4,3] (there is a stride for each dimension of shape)");
  for (const std::int64_t stride : {std::int64_t{0}, std::int64_t{-3}, std::int64_t{1} << 62}) {
    CHECK(refused({4, 0}, {stride, 1}) == "random_normal: strides [" + std::to_string(stride) +
                                              ",1] for shape [4,0] (a stride is at least 1 and below 2^32)");
  }
  CHECK(
      refused({4, 3}, {2, 1}) ==
      "random_normal: strides [2,1] give two elements one index in shape [4,3] (they are those of the undivided array "
      "of a row)");
  CHECK(
      refused({3, 2}, {std::int64_t{1} << 31, 1}) ==
      "random_normal: strides [2147483648,1] give an index of 2^32 or more in shape [3,2] (the counter has 32 bits for "
      "the element)");
  CHECK(
      refused({1, 1, 1, 1, 1, 1, 1, 1, 2}, Numbers(9, 1)) ==
      "random_normal: [1,1,1,1,1,1,1,1,2] has 9 dimensions, and 8 are supported (reshape neighbouring dimensions into "
      "one)");
  CHECK(
      refusal_of(RandomUniform{{3}, {1}}, {words, numbers}) ==
      "random_uniform: strides without an offset (a part of a row has an offset, its third operand; that of the first "
      "part is 0)");
  for (const Type& wrong : {type(DType::i64, {1}), type(DType::u32, {})}) {
    CHECK(refusal_of(RandomBernoulli{{3}, 0.5}, {words, numbers, wrong}) ==
          std::string("random_bernoulli: its offset is ") + (wrong.dtype == DType::i64 ? "i64[1]" : "u32[]") +
              ", not i32[] or i64[] (it is the index that the first element has in the undivided array of a row)");
  }
  CHECK(refusal_of(RandomUniform{{3}}, {words, numbers, offset, offset}) ==
        "random_uniform: takes 3 operands, not 4 (the operands given are u32[2], i64[2], i32[], i32[])");
  CHECK(refusal_of(RandomPermutation{3}, {words, numbers, offset}) ==
        "random_permutation: takes 2 operands, not 3 (the operands given are u32[2], i64[2], i32[])");
}

}  // namespace
}  // namespace pmaptrain
