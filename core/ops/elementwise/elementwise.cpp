#include "core/ops/elementwise/elementwise.h"

#include <fmt/format.h>

#include <cassert>
#include <utility>

#include "core/ops/elementwise/compare.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

void expect_domain(std::string_view op, DType dtype, Domain domain) {
  const auto refuse = [&](std::string_view works_on, std::string_view help) {
    throw TypeError(6, fmt::format("{}: works on {}, not on {}", op, works_on, to_string(dtype)), std::string(help));
  };
  switch (domain) {
    case Domain::floating:
      if (!is_floating(dtype)) refuse("f32 and f64", "cast the operand to a floating type first");
      break;
    case Domain::signed_numbers:
      if (!is_floating(dtype) && dtype != DType::i32 && dtype != DType::i64) {
        refuse("signed numbers", "cast the operand to i32, i64 or a floating type first");
      }
      break;
    case Domain::numbers: expect_numeric(op, dtype); break;
    case Domain::any: break;
  }
}

// The shape of the result: the operands' common one, where [] goes with every other.
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

// Runs the reference once over the elements of all devices.
class StackedKernel final : public CpuKernel {
 public:
  StackedKernel(std::shared_ptr<const void> op, ReferenceFunction function, std::vector<Type> operands, Type result)
      : op_(std::move(op)), function_(function), operand_types_(std::move(operands)), result_type_(std::move(result)) {
    for (const Type& type : operand_types_) operands_.push_back({&type, nullptr});
  }

  void run(const CpuArguments& arguments) override {
    for (std::size_t i = 0; i < operands_.size(); ++i) operands_[i].data = arguments.operands[i];
    const Array result{&result_type_, arguments.results[0]};
    function_(op_.get(), {operands_, {&result, 1}});
  }

  std::string implementation() const override { return "reference, stacked"; }

 private:
  std::shared_ptr<const void> op_;
  ReferenceFunction function_;
  std::vector<Type> operand_types_;
  Type result_type_;
  std::vector<ConstArray> operands_;
};

// A function of f32 arrays. Every request is taken, so that an element's bits do not depend on how operands are
// stacked.
class VectorKernel final : public CpuKernel {
 public:
  VectorKernel(const CpuRequest& request, VectorMath function)
      : elements_(static_cast<std::size_t>(numel(request.results[0]))),
        devices_(static_cast<std::size_t>(request.devices)),
        stacked_(request.stacked[0]),
        function_(function) {}

  void run(const CpuArguments& arguments) override {
    const auto* x = reinterpret_cast<const float*>(arguments.operands[0]);
    auto* y = reinterpret_cast<float*>(arguments.results[0]);
    if (stacked_) return function_(elements_ * devices_, x, y);
    for (std::size_t d = 0; d < devices_; ++d) function_(elements_, x, y + d * elements_);
  }
  std::string implementation() const override { return "vectors"; }

 private:
  std::size_t elements_, devices_;
  bool stacked_;
  VectorMath function_;
};

// The same of two operands.
class VectorKernel2 final : public CpuKernel {
 public:
  VectorKernel2(const CpuRequest& request, VectorMath2 function)
      : elements_(static_cast<std::size_t>(numel(request.results[0]))),
        calls_(static_cast<std::size_t>(request.devices)),
        function_(function) {
    bool one_call = true;
    for (std::size_t i = 0; i < 2; ++i) {
      const bool scalar = request.operands[i].shape != request.results[0].shape;
      steps_[i] = scalar ? 0 : 1;
      call_steps_[i] = request.stacked[i] ? (scalar ? 1 : elements_) : 0;
      one_call &= request.stacked[i] != scalar;
    }
    if (one_call) elements_ *= std::exchange(calls_, 1);
  }

  void run(const CpuArguments& arguments) override {
    const auto* x = reinterpret_cast<const float*>(arguments.operands[0]);
    const auto* y = reinterpret_cast<const float*>(arguments.operands[1]);
    auto* out = reinterpret_cast<float*>(arguments.results[0]);
    for (std::size_t call = 0; call < calls_; ++call) {
      function_(elements_, x + call * call_steps_[0], steps_[0], y + call * call_steps_[1], steps_[1],
                out + call * elements_);
    }
  }
  std::string implementation() const override { return "vectors"; }

 private:
  std::size_t elements_, calls_;
  std::size_t steps_[2], call_steps_[2];  // from element to element, and from call to call
  VectorMath2 function_;
};

}  // namespace

std::vector<Type> infer_elementwise(std::string_view op, const InferContext& context, std::size_t operands,
                                    Domain domain, bool compares) {
  expect_operands(op, context.operands, operands);
  for (std::size_t i = 1; i < operands; ++i) expect_equal_dtypes(op, context.operands[0], context.operands[i]);
  expect_domain(op, context.operands[0].dtype, domain);
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

Cost elementwise_cost(std::span<const Type> operands, std::span<const Type> results) {
  return traffic(operands, results, static_cast<double>(numel(results[0])));
}

std::unique_ptr<CpuKernel> make_elementwise_kernel(std::shared_ptr<const void> op, ReferenceFunction function,
                                                   const CpuRequest& request) {
  assert(request.results.size() == 1 && request.stacked.size() == request.operands.size());
  const Type& result = request.results[0];
  const auto merged = [&](const Type& type) { return Type{type.dtype, {request.devices * numel(type)}, {}}; };
  std::vector<Type> operands;
  bool any_stacked = false;
  for (std::size_t i = 0; i < request.operands.size(); ++i) {
    const Type& operand = request.operands[i];
    if (request.stacked[i]) {
      if (operand.shape != result.shape) return nullptr;
      operands.push_back(merged(operand));
      any_stacked = true;
    } else {
      if (!operand.shape.empty()) return nullptr;
      operands.push_back(operand);
    }
  }
  if (!any_stacked) return nullptr;
  return std::make_unique<StackedKernel>(std::move(op), function, std::move(operands), merged(result));
}

std::unique_ptr<CpuKernel> make_vector_kernel(VectorMath function, const CpuRequest& request) {
  if (function == nullptr || request.results[0].dtype != DType::f32) return nullptr;
  return std::make_unique<VectorKernel>(request, function);
}

std::unique_ptr<CpuKernel> make_vector_kernel(VectorMath2 function, const CpuRequest& request) {
  if (function == nullptr || request.results[0].dtype != DType::f32) return nullptr;
  return std::make_unique<VectorKernel2>(request, function);
}

}  // namespace pmaptrain::ops
