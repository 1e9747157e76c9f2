#include "core/ops/random/random.h"

#include <fmt/format.h>

#include "core/base/philox.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

std::vector<Type> infer_random(std::string_view name, const InferContext& context, const Shape& shape) {
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
  return one_result(DType::f32, std::move(result));
}

// Calls out[...] = from_words(words) for every element of every row.
template <class F>
void fill_rows(const ReferenceCall& call, std::int64_t elements, F from_words) {
  const std::uint32_t* words = call.operands[0].as<std::uint32_t>();
  const PhiloxKey key{words[0], words[1]};
  const std::int64_t* rows = call.operands[1].as<std::int64_t>();
  float* out = call.results[0].as<float>();
  for (std::int64_t r = 0; r < call.operands[1].size(); ++r) {
    const auto row = static_cast<std::uint64_t>(rows[r]);
    const auto low = static_cast<std::uint32_t>(row);
    const auto high = static_cast<std::uint32_t>(row >> 32);
    for (std::int64_t e = 0; e < elements; ++e) {
      *out++ = from_words(philox4x32(key, {low, high, static_cast<std::uint32_t>(e), 0}));
    }
  }
}

// Ten rounds of two multiplications and four xors or additions each.
constexpr double flops_per_block = 60;

}  // namespace

std::vector<Type> RandomUniform::infer(const InferContext& context) const { return infer_random(name, context, shape); }

Cost RandomUniform::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, flops_per_block * static_cast<double>(numel(results[0])));
}

void RandomUniform::reference(const ReferenceCall& call) const {
  fill_rows(call, numel(shape), [](const auto& words) { return uniform_from_bits(words[0]); });
}

std::vector<Type> RandomNormal::infer(const InferContext& context) const { return infer_random(name, context, shape); }

Cost RandomNormal::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, flops_per_block * static_cast<double>(numel(results[0])));
}

void RandomNormal::reference(const ReferenceCall& call) const {
  fill_rows(call, numel(shape), [](const auto& words) { return normal_from_bits(words[0], words[1]); });
}

}  // namespace pmaptrain::ops
