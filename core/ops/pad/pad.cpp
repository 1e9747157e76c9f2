#include "core/ops/pad/pad.h"

#include <fmt/format.h>

#include <cstring>

#include "core/ops/slice/slice.h"
#include "core/ops/support/boxes.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {

std::vector<Type> Pad::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 1);
  const Type& x = context.operands[0];
  expect_rank(name, x.shape);
  const std::size_t rank = x.shape.size();
  if (low.size() != rank || high.size() != rank) {
    throw TypeError(6,
                    fmt::format("{}: {} has {} dimensions; low={} has {} and high={} has {}", name, describe(x), rank,
                                to_string(low), low.size(), to_string(high), high.size()),
                    "give a number of zeros before and one after for each dimension");
  }
  Shape shape;
  for (std::size_t i = 0; i < rank; ++i) {
    if (low[i] < 0 || high[i] < 0) {
      throw TypeError(6,
                      fmt::format("{}: {} before and {} after dimension {} of {}: one is negative", name, low[i],
                                  high[i], i, describe(x)),
                      "slice takes elements away");
    }
    if (low[i] > most_elements || high[i] > most_elements) {
      throw TypeError(6, fmt::format("{}: {} before and {} after dimension {} of {}: more than 10^12 elements", name,
                                     low[i], high[i], i, describe(x)));
    }
    shape.push_back(low[i] + x.shape[i] + high[i]);
  }
  return one_result(x.dtype, std::move(shape));
}

Cost Pad::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results);
}

Cotangents Pad::derivative(VjpContext& context) const {
  const Shape shape = context.b.type(context.operands[0]).shape;
  std::vector<std::int64_t> limits;
  for (std::size_t i = 0; i < shape.size(); ++i) limits.push_back(low[i] + shape[i]);
  return {context.b.emit(Slice{low, limits}, {*context.cotangents[0]})};
}

void Pad::reference(const ReferenceCall& call) const {
  const std::size_t size = bytes(*call.results[0].type);
  if (size == 0) return;
  std::memset(call.results[0].data, 0, size);
  const Dims strides = row_major(call.results[0].shape());
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < low.size(); ++i) offset += low[i] * strides[i];
  const std::size_t element = size_of(call.results[0].dtype());
  copy_box(call.operands[0].shape(), call.operands[0].data, row_major(call.operands[0].shape()),
           call.results[0].data + static_cast<std::size_t>(offset) * element, strides, element);
}

}  // namespace pmaptrain::ops
