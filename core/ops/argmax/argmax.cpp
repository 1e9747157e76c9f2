#include "core/ops/argmax/argmax.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

// Whether x takes the place of `best`: it is larger, or the first NaN.
template <class T>
bool beats(T x, T best) {
  if constexpr (std::is_floating_point_v<T>) {
    return (x > best) | ((x != x) & (best == best));
  } else {
    return x > best;
  }
}

// x [outer, size, inner] -> out [outer, inner]. Row by row of `inner`, so that memory is read in order.
template <class T>
void argmax(const T* x, std::int64_t outer, std::int64_t size, std::int64_t inner, std::int32_t* out) {
  for (std::int64_t o = 0; o < outer; ++o, x += size * inner, out += inner) {
    std::fill_n(out, inner, 0);
    for (std::int64_t i = 1; i < size; ++i) {
      const T* row = x + i * inner;
      for (std::int64_t j = 0; j < inner; ++j) {
        if (beats(row[j], x[out[j] * inner + j])) out[j] = static_cast<std::int32_t>(i);
      }
    }
  }
}

}  // namespace

std::vector<Type> Argmax::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 1);
  const Type& x = context.operands[0];
  expect_numeric(name, x.dtype);
  expect_rising_dims(name, {&dim, 1}, x.shape.size());
  const std::int64_t size = x.shape[static_cast<std::size_t>(dim)];
  if (size == 0 || size > std::numeric_limits<std::int32_t>::max()) {
    throw TypeError(6, fmt::format("{}: dimension {} of {} has no index as an i32", name, dim, describe(x)),
                    "its size is at least 1 and below 2^31");
  }
  Shape shape = x.shape;
  shape.erase(shape.begin() + dim);
  return one_result(DType::i32, std::move(shape));
}

Cost Argmax::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, static_cast<double>(numel(operands[0])));
}

void Argmax::reference(const ReferenceCall& call) const {
  const Shape& shape = call.operands[0].shape();
  const std::int64_t size = shape[static_cast<std::size_t>(dim)];
  std::int64_t inner = 1;
  for (std::size_t d = static_cast<std::size_t>(dim) + 1; d < shape.size(); ++d) inner *= shape[d];
  const std::int64_t results = call.results[0].size();
  if (results == 0) return;
  dispatch(call.operands[0].dtype(), [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      argmax(call.operands[0].as<T>(), results / inner, size, inner, call.results[0].as<std::int32_t>());
    }
  });
}

}  // namespace pmaptrain::ops
