#include "core/ops/cast/cast.h"

#include "core/ops/cast/convert.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/elementwise/loops.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
std::vector<Type> Cast::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 1);
  return one_result(dtype, context.operands[0].shape);
}

Cost Cast::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return elementwise_cost(operands, results);
}

Cotangents Cast::derivative(VjpContext& context) const {
  const DType from = context.b.type(context.operands[0]).dtype;
  if (!is_floating(from) || !context.cotangents[0]) return Cotangents(1);
  return {context.b.emit(Cast{from}, {*context.cotangents[0]})};
}

Value as_dtype(Builder& b, DType dtype, Value x) { return b.type(x).dtype == dtype ? x : b.emit(Cast{dtype}, {x}); }

void Cast::reference(const ReferenceCall& call) const {
  dispatch(call.operands[0].dtype(),
           [&]<class From>() { dispatch(dtype, [&]<class To>() { map_unary<From, To>(call, convert<To, From>); }); });
}

std::unique_ptr<CpuKernel> Cast::cpu(const CpuRequest& request) const {
  return make_elementwise_kernel(*this, request);
}

}  // namespace pmaptrain::ops
