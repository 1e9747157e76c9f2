#include "core/ops/random/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/base/philox.h"
#include "core/ops/random/part.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

constexpr std::int64_t most_in_row = std::int64_t{1} << 32;  // the counter has 32 bits for the element

// Checks the strides of the undivided row of a part. No two elements of the part may have the same index.
void expect_strides(std::string_view name, const Shape& shape, std::span<const std::int64_t> strides) {
  const auto refuse = [&](std::string_view what, std::string_view help) {
    throw TypeError(6,
                    fmt::format("{}: strides {} {} {}", name, to_string(Shape(strides.begin(), strides.end())), what,
                                to_string(shape)),
                    std::string(help));
  };
  if (strides.size() != shape.size()) refuse("for shape", "there is a stride for each dimension of shape");
  expect_rank(name, shape);
  std::vector<std::pair<std::int64_t, std::int64_t>> dims;  // stride and size
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (strides[d] < 1 || strides[d] >= most_in_row) refuse("for shape", "a stride is at least 1 and below 2^32");
    if (shape[d] > 1) dims.emplace_back(strides[d], shape[d]);
  }
  if (numel(shape) == 0) return;
  std::sort(dims.begin(), dims.end());
  std::int64_t end = 1;  // the indices of the dimensions so far are below it
  for (const auto& [stride, size] : dims) {
    if (stride < end) refuse("give two elements one index in shape", "they are those of the undivided array of a row");
    if (size - 1 > (most_in_row - end) / stride) {
      refuse("give an index of 2^32 or more in shape", "the counter has 32 bits for the element");
    }
    end += stride * (size - 1);
  }
}

// Of an op that draws parts of rows, `strides` are its attribute.
std::vector<Type> infer_random(std::string_view name, const InferContext& context, const Shape& shape,
                               const std::vector<std::int64_t>* strides, DType dtype = DType::f32) {
  const bool has_offset = strides != nullptr && context.operands.size() > 2;
  expect_operands(name, context.operands, has_offset ? 3 : 2);
  expect_sizes(name, shape);
  const Type& key = context.operands[0];
  const Type& rows = context.operands[1];
  if (key.dtype != DType::u32 || key.shape != Shape{2}) {
    throw TypeError(6, fmt::format("{}: its key is {}, not u32[2]", name, describe(key)),
                    "a key is made of the seed and a stream's name");
  }
  if (rows.dtype != DType::i64 || rows.shape.size() != 1) {
    throw TypeError(6, fmt::format("{}: its rows are {}, not i64 with one dimension", name, describe(rows)),
                    "rows are the positions of the batch's examples in the sample stream");
  }
  if (numel(shape) >= most_in_row) {
    throw TypeError(6, fmt::format("{}: a row of shape {} has 2^32 elements or more", name, to_string(shape)),
                    "the counter has 32 bits for the element");
  }
  if (has_offset) {
    const Type& offset = context.operands[2];
    if ((offset.dtype != DType::i32 && offset.dtype != DType::i64) || !offset.shape.empty()) {
      throw TypeError(6, fmt::format("{}: its offset is {}, not i32[] or i64[]", name, describe(offset)),
                      "it is the index that the first element has in the undivided array of a row");
    }
  }
  if (strides != nullptr && !strides->empty()) {
    if (!has_offset) {
      throw TypeError(6, fmt::format("{}: strides without an offset", name),
                      "a part of a row has an offset, its third operand; that of the first part is 0");
    }
    expect_strides(name, shape, *strides);
  }
  Shape result = rows.shape;
  result.insert(result.end(), shape.begin(), shape.end());
  return one_result(dtype, std::move(result));
}

// Calls f(row, element, words) for every element of every row, which are a part of an undivided row.
template <class F>
void for_each_element(const ReferenceCall& call, const RowPart& part, F f) {
  const std::uint32_t* words = call.operands[0].as<std::uint32_t>();
  const PhiloxKey key{words[0], words[1]};
  const std::int64_t* rows = call.operands[1].as<std::int64_t>();
  const std::uint32_t offset = offset_of(call, 2);
  const std::int64_t elements = part.elements();
  for (std::int64_t r = 0; r < call.operands[1].size(); ++r) {
    const auto row = static_cast<std::uint64_t>(rows[r]);
    const auto low = static_cast<std::uint32_t>(row);
    const auto high = static_cast<std::uint32_t>(row >> 32);
    for (std::int64_t e = 0; e < elements; ++e) f(r, e, philox4x32(key, {low, high, offset + part.index_of(e), 0}));
  }
}

// out[...] = from_words(words) for every element of every row.
template <class T, class F>
void fill_elements(const ReferenceCall& call, const RowPart& part, F from_words) {
  T* out = call.results[0].as<T>();
  for_each_element(call, part, [&](std::int64_t, std::int64_t, const auto& words) { *out++ = from_words(words); });
}

// Counts ten rounds with two multiplications and four xors or additions each.
constexpr double flops_per_block = 60;

}  // namespace

std::vector<Type> RandomUniform::infer(const InferContext& context) const {
  return infer_random(name, context, shape, &strides);
}

Cost RandomUniform::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, flops_per_block * static_cast<double>(numel(results[0])));
}

void RandomUniform::reference(const ReferenceCall& call) const {
  fill_elements<float>(call, {shape, strides}, [](const auto& words) { return uniform_from_bits(words[0]); });
}

std::vector<Type> RandomNormal::infer(const InferContext& context) const {
  return infer_random(name, context, shape, &strides);
}

Cost RandomNormal::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, flops_per_block * static_cast<double>(numel(results[0])));
}

void RandomNormal::reference(const ReferenceCall& call) const {
  fill_elements<float>(call, {shape, strides}, [](const auto& words) { return normal_from_bits(words[0], words[1]); });
}

std::vector<Type> RandomBernoulli::infer(const InferContext& context) const {
  if (!(probability >= 0 && probability <= 1)) {
    throw TypeError(6, fmt::format("{}: the probability is {}", name, probability), "it lies from 0 to 1");
  }
  return infer_random(name, context, shape, &strides, DType::boolean);
}

Cost RandomBernoulli::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, flops_per_block * static_cast<double>(numel(results[0])));
}

void RandomBernoulli::reference(const ReferenceCall& call) const {
  fill_elements<bool>(call, {shape, strides}, [&](const auto& words) {
    return static_cast<double>(uniform_from_bits(words[0])) < probability;
  });
}

std::vector<Type> RandomPermutation::infer(const InferContext& context) const {
  if (size < 1 || size > std::numeric_limits<std::int32_t>::max()) {
    throw TypeError(6, fmt::format("{}: the size is {}", name, size), "it is at least 1 and below 2^31");
  }
  return infer_random(name, context, {size}, nullptr, DType::i32);
}

Cost RandomPermutation::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, flops_per_block * static_cast<double>(numel(results[0])));
}

void RandomPermutation::reference(const ReferenceCall& call) const {
  auto* const out = call.results[0].as<std::int32_t>();
  for (std::int64_t at = 0; at < call.results[0].size(); at += size) std::iota(out + at, out + at + size, 0);
  for_each_element(call, {{size}, {}}, [&](std::int64_t r, std::int64_t e, const auto& words) {
    if (e == 0) return;
    const std::uint64_t other = (std::uint64_t{words[0]} * static_cast<std::uint64_t>(e + 1)) >> 32;
    std::swap(out[r * size + e], out[r * size + static_cast<std::int64_t>(other)]);
  });
}

}  // namespace pmaptrain::ops
