#include "core/ops/cumsum/cumsum.h"

#include <algorithm>

#include "core/ops/support/arithmetic.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {

std::vector<Type> Cumsum::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 1);
  const Type& x = context.operands[0];
  expect_numeric(name, x.dtype);
  expect_rising_dims(name, {&dim, 1}, x.shape.size());
  return one_result(x.dtype, x.shape);
}

Cost Cumsum::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, static_cast<double>(numel(results[0])));
}

Cotangents Cumsum::derivative(VjpContext& context) const {
  return {context.b.emit(Cumsum{dim, !reverse}, {*context.cotangents[0]})};
}

void Cumsum::reference(const ReferenceCall& call) const {
  const Shape& shape = call.results[0].shape();
  const std::int64_t all = call.results[0].size();
  if (all == 0) return;
  const std::int64_t size = shape[static_cast<std::size_t>(dim)];
  std::int64_t inner = 1;
  for (std::size_t d = static_cast<std::size_t>(dim) + 1; d < shape.size(); ++d) inner *= shape[d];
  dispatch_arithmetic(call.results[0].dtype(), [&]<class T>() {
    for (std::int64_t start = 0; start < all; start += size * inner) {
      const T* x = call.operands[0].as<T>() + start;
      T* y = call.results[0].as<T>() + start;
      const std::int64_t stride = reverse ? -inner : inner;
      const std::int64_t first = reverse ? (size - 1) * inner : 0;
      std::copy_n(x + first, inner, y + first);
      for (std::int64_t i = 1; i < size; ++i) {
        const std::int64_t at = first + i * stride;
        for (std::int64_t j = 0; j < inner; ++j) y[at + j] = wrapping_add(y[at - stride + j], x[at + j]);
      }
    }
  });
}

}  // namespace pmaptrain::ops
