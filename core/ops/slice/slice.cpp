#include "core/ops/slice/slice.h"

#include <fmt/format.h>

#include "core/ops/pad/pad.h"
#include "core/ops/support/boxes.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {

std::vector<Type> Slice::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 1);
  const Type& x = context.operands[0];
  expect_rank(name, x.shape);
  const std::size_t rank = x.shape.size();
  if (starts.size() != rank || limits.size() != rank) {
    throw TypeError(6,
                    fmt::format("{}: {} has {} dimensions; starts={} has {} and limits={} has {}", name, describe(x),
                                rank, to_string(starts), starts.size(), to_string(limits), limits.size()),
                    "give a start and a limit for each dimension");
  }
  Shape shape;
  for (std::size_t i = 0; i < rank; ++i) {
    if (starts[i] < 0 || limits[i] < starts[i] || limits[i] > x.shape[i]) {
      throw TypeError(
          6, fmt::format("{}: {} to {} does not lie in dimension {} of {}", name, starts[i], limits[i], i, describe(x)),
          fmt::format("0 <= start <= limit <= {}", x.shape[i]));
    }
    shape.push_back(limits[i] - starts[i]);
  }
  return one_result(x.dtype, std::move(shape));
}

Cost Slice::cost(const Mesh&, std::span<const Type>, std::span<const Type> results) const {
  return traffic(results, results);  // it reads as much as it writes
}

Cotangents Slice::derivative(VjpContext& context) const {
  const Shape shape = context.b.type(context.operands[0]).shape;
  std::vector<std::int64_t> high;
  for (std::size_t i = 0; i < shape.size(); ++i) high.push_back(shape[i] - limits[i]);
  return {context.b.emit(Pad{starts, high}, {*context.cotangents[0]})};
}

void Slice::reference(const ReferenceCall& call) const {
  const Dims strides = row_major(call.operands[0].shape());
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) offset += starts[i] * strides[i];
  const std::size_t element = size_of(call.results[0].dtype());
  copy_box(call.results[0].shape(), call.operands[0].data + static_cast<std::size_t>(offset) * element, strides,
           call.results[0].data, row_major(call.results[0].shape()), element);
}

}  // namespace pmaptrain::ops
