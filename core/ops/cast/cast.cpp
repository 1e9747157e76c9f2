#include "core/ops/cast/cast.h"

#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/ops/elementwise/elementwise.h"
#include "core/ops/elementwise/loops.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

template <class To, class From>
To convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From{0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Both bounds are powers of two or 0, hence exact; the upper one is the first that does not fit.
    constexpr auto lowest = static_cast<From>(std::numeric_limits<To>::min());
    constexpr auto above = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * From{2};
    if (x != x) return To{0};
    if (x < lowest) return std::numeric_limits<To>::min();
    if (x >= above) return std::numeric_limits<To>::max();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace

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

void Cast::reference(const ReferenceCall& call) const {
  dispatch(call.operands[0].dtype(),
           [&]<class From>() { dispatch(dtype, [&]<class To>() { map_unary<From, To>(call, convert<To, From>); }); });
}

std::unique_ptr<CpuKernel> Cast::cpu(const CpuRequest& request) const {
  const auto function = [](const void* op, const ReferenceCall& call) {
    static_cast<const Cast*>(op)->reference(call);
  };
  return make_elementwise_kernel(std::make_shared<Cast>(*this), function, request);
}

}  // namespace pmaptrain::ops
