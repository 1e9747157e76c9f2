#include "core/ops/constant/constant.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/base/text.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

template <class T>
bool holds(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value == 0 || value == 1;
  } else if constexpr (std::is_floating_point_v<T>) {
    return !std::isfinite(value) || std::abs(value) <= static_cast<double>(std::numeric_limits<T>::max());
  } else {
    // The upper bound is the first power of two that does not fit: exact for every type.
    const double above = 2.0 * static_cast<double>(std::numeric_limits<T>::max() / 2 + 1);
    return value >= static_cast<double>(std::numeric_limits<T>::min()) && value < above && value == std::trunc(value);
  }
}

}  // namespace

std::vector<Type> Constant::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 0);
  expect_sizes(name, shape);
  if (!dispatch(dtype, [&]<class T>() { return holds<T>(value); })) {
    throw TypeError(6, fmt::format("{}: {} is not a value of {}", name, exact(value), to_string(dtype)),
                    "a bool is 0 or 1, an integer has no fraction, and each type has its range");
  }
  return one_result(dtype, shape);
}

Cost Constant::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results);
}

void Constant::reference(const ReferenceCall& call) const {
  dispatch(dtype,
           [&]<class T>() { std::fill_n(call.results[0].as<T>(), call.results[0].size(), static_cast<T>(value)); });
}

}  // namespace pmaptrain::ops
