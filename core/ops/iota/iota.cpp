#include "core/ops/iota/iota.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

// The largest integer up to which the type represents all integers.
template <class T>
constexpr std::int64_t last_whole() {
  if constexpr (FloatingElement<T>) {
    return std::int64_t{1} << std::numeric_limits<T>::digits;
  } else {
    return static_cast<std::int64_t>(std::numeric_limits<T>::max());
  }
}

}  // namespace

std::vector<Type> Iota::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 0);
  expect_numeric(name, dtype);
  expect_sizes(name, shape);
  expect_rising_dims(name, {&dim, 1}, shape.size());
  const std::int64_t last = dispatch(dtype, []<class T>() { return last_whole<T>(); });
  const std::int64_t size = shape[static_cast<std::size_t>(dim)];
  if (size - 1 > last) {
    throw TypeError(6,
                    fmt::format("{}: {} does not hold the {} indices of dimension {} of {}", name, to_string(dtype),
                                size, dim, to_string(shape)),
                    fmt::format("it holds every whole number up to {}; i64 holds more", last));
  }
  return one_result(dtype, shape);
}

Cost Iota::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results);
}

void Iota::reference(const ReferenceCall& call) const {
  const std::int64_t total = call.results[0].size();
  if (total == 0) return;
  std::int64_t inner = 1;
  for (std::size_t d = static_cast<std::size_t>(dim) + 1; d < shape.size(); ++d) inner *= shape[d];
  const std::int64_t size = shape[static_cast<std::size_t>(dim)];
  dispatch(dtype, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      T* out = call.results[0].as<T>();
      for (std::int64_t outer = 0; outer < total / (size * inner); ++outer) {
        for (std::int64_t i = 0; i < size; ++i) out = std::fill_n(out, inner, static_cast<T>(i));
      }
    }
  });
}

}  // namespace pmaptrain::ops
