#include "core/ops/reverse/reverse.h"

#include "core/ops/support/boxes.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {

std::vector<Type> Reverse::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 1);
  const Type& x = context.operands[0];
  expect_rank(name, x.shape);
  expect_rising_dims(name, dims, x.shape.size());
  return one_result(x.dtype, x.shape);
}

Cost Reverse::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results);
}

Cotangents Reverse::derivative(VjpContext& context) const { return {context.b.emit(*this, {*context.cotangents[0]})}; }

void Reverse::reference(const ReferenceCall& call) const {
  const Shape& shape = call.results[0].shape();
  if (call.results[0].size() == 0) return;
  const Dims to = row_major(shape);
  Dims from = to;
  std::int64_t first = 0;
  for (const std::int64_t dim : dims) {
    const auto d = static_cast<std::size_t>(dim);
    first += (shape[d] - 1) * to[d];
    from[d] = -to[d];
  }
  const std::size_t element = size_of(call.results[0].dtype());
  copy_box(shape, call.operands[0].data + static_cast<std::size_t>(first) * element, from, call.results[0].data, to,
           element);
}

}  // namespace pmaptrain::ops
