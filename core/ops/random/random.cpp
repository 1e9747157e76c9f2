#include "core/ops/random/random.h"

#include <fmt/format.h>

#include <limits>
#include <numeric>
#include <utility>

#include "core/base/philox.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

std::vector<Type> infer_random(std::string_view name, const InferContext& context, const Shape& shape,
                               DType dtype = DType::f32) {
  expect_operands(name, context.operands, 2);
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
  if (numel(shape) >= std::int64_t{1} << 32) {
    throw TypeError(6, fmt::format("{}: a row of shape {} has 2^32 elements or more", name, to_string(shape)),
                    "the counter has 32 bits for the element");
  }
  Shape result = rows.shape;
  result.insert(result.end(), shape.begin(), shape.end());
  return one_result(dtype, std::move(result));
}

// Calls f(row, element, words) for every element of every row.
template <class F>
void for_each_element(const ReferenceCall& call, std::int64_t elements, F f) {
  const std::uint32_t* words = call.operands[0].as<std::uint32_t>();
  const PhiloxKey key{words[0], words[1]};
  const std::int64_t* rows = call.operands[1].as<std::int64_t>();
  for (std::int64_t r = 0; r < call.operands[1].size(); ++r) {
    const auto row = static_cast<std::uint64_t>(rows[r]);
    const auto low = static_cast<std::uint32_t>(row);
    const auto high = static_cast<std::uint32_t>(row >> 32);
    for (std::int64_t e = 0; e < elements; ++e) {
      f(r, e, philox4x32(key, {low, high, static_cast<std::uint32_t>(e), 0}));
    }
  }
}

// out[...] = from_words(words) for every element of every row.
template <class T, class F>
void fill_elements(const ReferenceCall& call, std::int64_t elements, F from_words) {
  T* out = call.results[0].as<T>();
  for_each_element(call, elements, [&](std::int64_t, std::int64_t, const auto& words) { *out++ = from_words(words); });
}

// Counts ten rounds with two multiplications and four xors or additions each.
constexpr double flops_per_block = 60;

}  // namespace

std::vector<Type> RandomUniform::infer(const InferContext& context) const { return infer_random(name, context, shape); }

Cost RandomUniform::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, flops_per_block * static_cast<double>(numel(results[0])));
}

void RandomUniform::reference(const ReferenceCall& call) const {
  fill_elements<float>(call, numel(shape), [](const auto& words) { return uniform_from_bits(words[0]); });
}

std::vector<Type> RandomNormal::infer(const InferContext& context) const { return infer_random(name, context, shape); }

Cost RandomNormal::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, flops_per_block * static_cast<double>(numel(results[0])));
}

void RandomNormal::reference(const ReferenceCall& call) const {
  fill_elements<float>(call, numel(shape), [](const auto& words) { return normal_from_bits(words[0], words[1]); });
}

std::vector<Type> RandomBernoulli::infer(const InferContext& context) const {
  if (!(probability >= 0 && probability <= 1)) {
    throw TypeError(6, fmt::format("{}: the probability is {}", name, probability), "it lies from 0 to 1");
  }
  return infer_random(name, context, shape, DType::boolean);
}

Cost RandomBernoulli::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, flops_per_block * static_cast<double>(numel(results[0])));
}

void RandomBernoulli::reference(const ReferenceCall& call) const {
  fill_elements<bool>(call, numel(shape), [&](const auto& words) {
    return static_cast<double>(uniform_from_bits(words[0])) < probability;
  });
}

std::vector<Type> RandomPermutation::infer(const InferContext& context) const {
  if (size < 1 || size > std::numeric_limits<std::int32_t>::max()) {
    throw TypeError(6, fmt::format("{}: the size is {}", name, size), "it is at least 1 and below 2^31");
  }
  return infer_random(name, context, {size}, DType::i32);
}

Cost RandomPermutation::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, flops_per_block * static_cast<double>(numel(results[0])));
}

void RandomPermutation::reference(const ReferenceCall& call) const {
  auto* const out = call.results[0].as<std::int32_t>();
  for (std::int64_t at = 0; at < call.results[0].size(); at += size) std::iota(out + at, out + at + size, 0);
  for_each_element(call, size, [&](std::int64_t r, std::int64_t e, const auto& words) {
    if (e == 0) return;
    const std::uint64_t other = (std::uint64_t{words[0]} * static_cast<std::uint64_t>(e + 1)) >> 32;
    std::swap(out[r * size + e], out[r * size + static_cast<std::int64_t>(other)]);
  });
}

}  // namespace pmaptrain::ops
