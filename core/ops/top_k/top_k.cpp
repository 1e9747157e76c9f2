#include "core/ops/top_k/top_k.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <type_traits>

#include "core/ops/broadcast/broadcast.h"
#include "core/ops/cast/cast.h"
#include "core/ops/elementwise/binary.h"
#include "core/ops/iota/iota.h"
#include "core/ops/reshape/reshape.h"
#include "core/ops/scatter_add/scatter_add.h"
#include "core/ops/support/arithmetic.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

// Selects the k best indices of a row of n with a heap whose root is the worst.
template <class T>
void choose(const T* x, std::int64_t n, std::int64_t k, T* values, std::int32_t* indices) {
  const auto before = [x](std::int32_t a, std::int32_t b) {
    return is_larger(x[a], x[b]) || (!is_larger(x[b], x[a]) && a < b);
  };
  std::iota(indices, indices + k, 0);
  std::make_heap(indices, indices + k, before);
  for (auto i = static_cast<std::int32_t>(k); i < n; ++i) {
    if (!is_larger(x[i], x[indices[0]])) continue;
    std::pop_heap(indices, indices + k, before);
    indices[k - 1] = i;
    std::push_heap(indices, indices + k, before);
  }
  std::sort_heap(indices, indices + k, before);
  for (std::int64_t i = 0; i < k; ++i) values[i] = x[indices[i]];
}

}  // namespace

std::vector<Type> TopK::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 1);
  const Type& x = context.operands[0];
  expect_numeric(name, x.dtype);
  if (x.shape.empty()) {
    throw TypeError(6, fmt::format("{}: {} has no dimension to choose along", name, describe(x)),
                    "its operand is [..., n]");
  }
  const std::int64_t n = x.shape.back();
  if (k < 1 || k > n || n > std::numeric_limits<std::int32_t>::max()) {
    throw TypeError(6, fmt::format("{}: the {} largest of {} elements", name, k, n),
                    "1 <= k <= n, and n is below 2^31");
  }
  Shape shape = x.shape;
  shape.back() = k;
  return {{x.dtype, shape, {}}, {DType::i32, shape, {}}};
}

Cost TopK::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, static_cast<double>(numel(operands[0])));
}

// Each value's cotangent goes to the element that it came from: row · n + index, in row-major order.
Cotangents TopK::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Type x = b.type(context.operands[0]);
  if (!context.cotangents[0]) return Cotangents(1);
  const std::int64_t n = x.shape.back(), rows = numel(x) / n, count = rows * k;
  const Value flat = b.emit(Reshape{{rows, k}}, {context.results[1]});
  const Value indices = b.emit(Cast{DType::i64}, {flat});
  const Value row = b.emit(Iota{DType::i64, {rows, k}, 0}, {});
  const Value offset = b.emit(Mul{}, {row, b.constant(DType::i64, static_cast<double>(n))});
  const Value places = b.emit(Reshape{{count}}, {b.emit(Add{}, {indices, offset})});
  const Value dy = b.emit(Reshape{{count}}, {*context.cotangents[0]});
  const Value dx = b.emit(ScatterAdd{rows * n}, {places, dy});
  return {b.emit(Reshape{x.shape}, {dx})};
}

void TopK::reference(const ReferenceCall& call) const {
  const std::int64_t n = call.operands[0].shape().back();
  const std::int64_t rows = call.operands[0].size() / n;
  dispatch(call.operands[0].dtype(), [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      for (std::int64_t r = 0; r < rows; ++r) {
        choose(call.operands[0].as<T>() + r * n, n, k, call.results[0].as<T>() + r * k,
               call.results[1].as<std::int32_t>() + r * k);
      }
    }
  });
}

}  // namespace pmaptrain::ops
