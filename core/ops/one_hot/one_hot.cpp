#include "core/ops/one_hot/one_hot.h"

#include <fmt/format.h>

#include <cstring>
#include <type_traits>

#include "core/ops/support/rules.h"

namespace pmaptrain::ops {

std::vector<Type> OneHot::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 1);
  expect_index_type(name, "its indices", context.operands[0]);
  expect_numeric(name, dtype);
  if (depth < 1) {
    throw TypeError(6, fmt::format("{}: depth is {}", name, depth), "depth is the number of classes, at least 1");
  }
  Shape shape = context.operands[0].shape;
  shape.push_back(depth);
  return one_result(dtype, std::move(shape));
}

Cost OneHot::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results);
}

void OneHot::reference(const ReferenceCall& call) const {
  const std::size_t size = bytes(*call.results[0].type);
  if (size == 0) return;
  std::memset(call.results[0].data, 0, size);
  const std::int64_t count = call.operands[0].size();
  dispatch(dtype, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      T* out = call.results[0].as<T>();
      const auto set_ones = [&](const auto* indices) {
        for (std::int64_t i = 0; i < count; ++i) {
          const auto index = static_cast<std::int64_t>(indices[i]);
          if (index >= 0 && index < depth) out[i * depth + index] = T{1};
        }
      };
      if (call.operands[0].dtype() == DType::i32) {
        set_ones(call.operands[0].as<std::int32_t>());
      } else {
        set_ones(call.operands[0].as<std::int64_t>());
      }
    }
  });
}

}  // namespace pmaptrain::ops
