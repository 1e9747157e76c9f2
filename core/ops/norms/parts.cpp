#include "core/ops/norms/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/ops/support/arithmetic.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

bool is_table(const Type& type) { return type.dtype == DType::i64 && type.shape.size() == 2 && type.shape.back() == 2; }

// A pair of bounds from a table, limited to 0 to `size`.
struct Bounds {
  std::int64_t begin, end;
};
Bounds bounds_at(const ConstArray& table, std::int64_t i, std::int64_t size) {
  const std::int64_t* const pair = table.as<std::int64_t>() + 2 * i;
  return {std::max(pair[0], std::int64_t{0}), std::min(pair[1], size)};
}

}  // namespace

std::vector<Type> NormsOfParts::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 3);
  const Type &x = context.operands[0], &chunks = context.operands[1], &parts = context.operands[2];
  if (!is_floating(x.dtype) || x.shape.size() != 1 || !is_table(chunks) || !is_table(parts)) {
    throw TypeError(6, fmt::format("{}: its operands are {}", name, describe(context.operands)),
                    "they are floating [n], i64[c,2] and i64[p,2]");
  }
  return {{DType::f64, {parts.shape[0]}, {}}, {x.dtype, {parts.shape[0]}, {}}};
}

Cost NormsOfParts::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, 2 * static_cast<double>(numel(operands[0])));
}

void NormsOfParts::reference(const ReferenceCall& call) const {
  const ConstArray &x = call.operands[0], &chunks = call.operands[1], &parts = call.operands[2];
  dispatch_floating_arithmetic(x.dtype(), [&]<class T>() {
    for (std::int64_t p = 0; p < parts.shape()[0]; ++p) {
      double squares = 0;
      T largest{};
      const Bounds part = bounds_at(parts, p, chunks.shape()[0]);
      for (std::int64_t c = part.begin; c < part.end; ++c) {
        const Bounds chunk = bounds_at(chunks, c, x.size());
        for (std::int64_t i = chunk.begin; i < chunk.end; ++i) {
          const T value = x.as<T>()[i];
          squares += static_cast<double>(value) * static_cast<double>(value);
          largest = larger(largest, std::abs(value));
        }
      }
      call.results[0].as<double>()[p] = squares;
      call.results[1].as<T>()[p] = largest;
    }
  });
}

}  // namespace pmaptrain::ops
