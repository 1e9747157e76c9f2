#include "core/ops/elementwise/elementwise.h"

#include <fmt/format.h>

#include <array>
#include <cassert>
#include <utility>

#include "core/ops/elementwise/compare.h"
#include "core/ops/elementwise/vector.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

void expect_kind(std::string_view op, DType dtype, ElementKinds takes) {
  const auto refuse = [&](std::string_view works_on, std::string_view help) {
    throw TypeError(6, fmt::format("{}: works on {}, not on {}", op, works_on, to_string(dtype)), std::string(help));
  };
  switch (takes) {
    case ElementKinds::floating:
      if (!is_floating(dtype)) refuse("floating types", "cast the operand to a floating type first");
      break;
    case ElementKinds::signed_numbers:
      if (!is_floating(dtype) && dtype != DType::i32 && dtype != DType::i64) {
        refuse("signed numbers", "cast the operand to i32, i64 or a floating type first");
      }
      break;
    case ElementKinds::numbers: expect_numeric(op, dtype); break;
    case ElementKinds::any: break;
  }
}

// The shape of the result: the common shape of the operands that are not scalars.
Shape common_shape(std::string_view op, std::span<const Type> operands) {
  const Type* shaped = nullptr;
  for (const Type& operand : operands) {
    if (operand.shape.empty()) continue;
    if (shaped == nullptr) shaped = &operand;
    if (operand.shape == shaped->shape) continue;
    throw TypeError(6, fmt::format("{}: the shapes of {} differ", op, describe(operands)),
                    "shapes are equal, or one is []; broadcast says along which dimensions to repeat");
  }
  return shaped == nullptr ? Shape{} : shaped->shape;
}

void expect_equal_dtypes(std::string_view op, const Type& a, const Type& b) {
  if (a.dtype == b.dtype) return;
  throw TypeError(6, fmt::format("{}: the element types of {}, {} differ", op, describe(a), describe(b)),
                  "cast one of them");
}

// The loop of an elementwise op. It runs once over the elements of all devices if each operand is stacked and has the
// result's shape, or is a scalar that all devices share; else once for each device.
class LoopKernel final : public CpuKernel {
 public:
  LoopKernel(VectorFunction function, const CpuRequest& request)
      : function_(function),
        elements_(static_cast<std::size_t>(numel(request.results[0]))),
        calls_(static_cast<std::size_t>(request.devices)),
        result_stride_(bytes(request.results[0])) {
    bool one_call = true;
    for (std::size_t i = 0; i < request.operands.size(); ++i) {
      operand_strides_.push_back(request.stacked[i] ? bytes(request.operands[i]) : 0);
      one_call &= request.stacked[i] != is_scalar(request, i);
    }
    if (one_call) elements_ *= std::exchange(calls_, 1);
  }

  // Whether operand i is a scalar.
  static bool is_scalar(const CpuRequest& request, std::size_t i) {
    return numel(request.operands[i]) == 1 && numel(request.results[0]) != 1;
  }

  void run(const CpuArguments& arguments) override {
    if (elements_ == 0) return;
    std::array<const std::byte*, 3> operands{};
    for (std::size_t call = 0; call < calls_; ++call) {
      for (std::size_t i = 0; i < operand_strides_.size(); ++i) {
        operands[i] = arguments.operands[i] + call * operand_strides_[i];
      }
      function_(operands[0], operands[1], operands[2], arguments.results[0] + call * result_stride_, elements_);
    }
  }
  std::string implementation() const override { return "vectors"; }

 private:
  VectorFunction function_;
  std::size_t elements_, calls_, result_stride_;
  std::vector<std::size_t> operand_strides_;  // distances in bytes between the operands of successive calls
};

}  // namespace

std::vector<Type> infer_elementwise(std::string_view op, const InferContext& context, std::size_t operands,
                                    ElementKinds takes, bool compares) {
  expect_operands(op, context.operands, operands);
  for (std::size_t i = 1; i < operands; ++i) expect_equal_dtypes(op, context.operands[0], context.operands[i]);
  expect_kind(op, context.operands[0].dtype, takes);
  const DType dtype = compares ? DType::boolean : context.operands[0].dtype;
  return one_result(dtype, common_shape(op, context.operands));
}

std::vector<Type> infer_select(const InferContext& context) {
  constexpr std::string_view op = Select::name;
  expect_operands(op, context.operands, 3);
  if (context.operands[0].dtype != DType::boolean) {
    throw TypeError(6, fmt::format("{}: its predicate is {}, not bool", op, describe(context.operands[0])),
                    "a comparison gives a bool");
  }
  expect_equal_dtypes(op, context.operands[1], context.operands[2]);
  return one_result(context.operands[1].dtype, common_shape(op, context.operands));
}

RowRule elementwise_rows(std::span<const Type> operands) {
  RowRule rule{RowRule::Kind::keeps};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].shape.empty()) rule.whole_operands |= 1U << i;
  }
  return rule;
}

Cost elementwise_cost(std::span<const Type> operands, std::span<const Type> results) {
  return traffic(operands, results, static_cast<double>(numel(results[0])));
}

std::unique_ptr<CpuKernel> make_elementwise_kernel(const Op& op, const CpuRequest& request) {
  assert(request.results.size() == 1 && request.operands.size() <= 3);
  unsigned scalars = 0;
  for (std::size_t i = 0; i < request.operands.size(); ++i) {
    if (LoopKernel::is_scalar(request, i)) scalars |= 1u << i;
  }
  const VectorFunction function = find_vector_function(op, request.operands.back().dtype, scalars);
  if (function == nullptr) return nullptr;
  return std::make_unique<LoopKernel>(function, request);
}

}  // namespace pmaptrain::ops
