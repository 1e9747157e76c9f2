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
  } else if constexpr (FloatingElement<T>) {
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
  const auto expect_held = [&](double number) {
    if (dispatch(dtype, [&]<class T>() { return holds<T>(number); })) return;
    throw TypeError(6, fmt::format("{}: {} is not a value of {}", name, exact(number), to_string(dtype)),
                    "a bool is 0 or 1, an integer has no fraction, and each type has its range");
  };
  expect_held(value);
  for (const double number : values) expect_held(number);
  if (!values.empty() && value != 0) {
    throw TypeError(6, fmt::format("{}: both value and values are given", name),
                    "value is one number for all elements, values has one for each");
  }
  if (!values.empty() && std::ssize(values) != numel(shape)) {
    throw TypeError(
        6,
        fmt::format("{}: {} values for {} elements of shape {}", name, values.size(), numel(shape), to_string(shape)),
        "values has a number for each element, in row-major order; value is one number for all");
  }
  return one_result(dtype, shape);
}

Cost Constant::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results);
}

void Constant::reference(const ReferenceCall& call) const {
  dispatch(dtype, [&]<class T>() {
    T* const out = call.results[0].as<T>();
    if (values.empty()) {
      std::fill_n(out, call.results[0].size(), static_cast<T>(value));
    } else {
      std::transform(values.begin(), values.end(), out, [](double number) { return static_cast<T>(number); });
    }
  });
}

std::optional<double> splat_of(const Op& op) {
  const auto* constant = op.as<Constant>();
  return constant != nullptr && constant->values.empty() ? std::optional(constant->value) : std::nullopt;
}

}  // namespace pmaptrain::ops
