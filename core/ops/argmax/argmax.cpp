#include "core/ops/argmax/argmax.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/ops/reduce/loops.h"
#include "core/ops/support/arithmetic.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

// The first index of `value` (or of a NaN) among n elements, which must contain it. Whole blocks are tested first,
// because the compiler vectorizes that.
template <class T>
std::int64_t first_place(const T* x, std::int64_t n, T value) {
  constexpr std::int64_t block = 64;
  const auto is_it = [value](T element) { return (element == value) | ((element != element) & (value != value)); };
  std::int64_t i = 0;
  for (; i + block <= n; i += block) {
    int found = 0;
    for (std::int64_t j = 0; j < block; ++j) found |= static_cast<int>(is_it(x[i + j]));
    if (found != 0) break;
  }
  while (!is_it(x[i])) ++i;
  return i;
}

// The argmax of n contiguous elements. For a short row, one pass is faster than two.
template <class T>
std::int64_t argmax_of_row(const T* x, std::int64_t n) {
  if (n >= 64) return first_place(x, n, reduce_contiguous<MaxReducer>(x, static_cast<std::size_t>(n)));
  T best = x[0];
  std::int64_t place = 0;
  for (std::int64_t i = 1; i < n; ++i) {
    const bool better = is_larger(x[i], best);
    best = better ? x[i] : best;
    place = better ? i : place;
  }
  return place;
}

// x [outer, size, inner] -> out [outer, inner]. Processes rows of `inner` elements, so that memory is read in order.
template <class T>
void argmax(const T* x, std::int64_t outer, std::int64_t size, std::int64_t inner, std::int32_t* out) {
  if (inner == 1) {
    for (std::int64_t o = 0; o < outer; ++o) out[o] = static_cast<std::int32_t>(argmax_of_row(x + o * size, size));
    return;
  }
  for (std::int64_t o = 0; o < outer; ++o, x += size * inner, out += inner) {
    std::fill_n(out, inner, 0);
    for (std::int64_t i = 1; i < size; ++i) {
      const T* row = x + i * inner;
      for (std::int64_t j = 0; j < inner; ++j) {
        if (is_larger(row[j], x[out[j] * inner + j])) out[j] = static_cast<std::int32_t>(i);
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
