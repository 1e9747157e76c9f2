#include "core/ops/elementwise/unary.h"

#include <cmath>
#include <type_traits>

#include "core/kernel/vector_math.h"
#include "core/ops/elementwise/binary.h"
#include "core/ops/elementwise/compare.h"
#include "core/ops/elementwise/functors.h"
#include "core/ops/elementwise/loops.h"
#include "core/ops/support/epilogue.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

template <class F>
void run_floating(const ReferenceCall& call, F f) {
  dispatch_floating(call.results[0].dtype(), [&]<class T>() { map_unary<T, T>(call, f); });
}

// Expects that infer has refused unsigned types and bool.
template <class F>
void run_signed(const ReferenceCall& call, F f) {
  dispatch(call.results[0].dtype(), [&]<class T>() {
    if constexpr (std::is_signed_v<T>) map_unary<T, T>(call, f);
  });
}

// The one cotangent of an op with one operand.
Cotangents only(Value value) { return {value}; }

}  // namespace

void Neg::reference(const ReferenceCall& call) const { run_signed(call, NegOf{}); }

void Exp::reference(const ReferenceCall& call) const {
  run_floating(call, [](auto x) { return std::exp(x); });
}

void Log::reference(const ReferenceCall& call) const {
  run_floating(call, [](auto x) { return std::log(x); });
}

void Sqrt::reference(const ReferenceCall& call) const { run_floating(call, SqrtOf{}); }

void Tanh::reference(const ReferenceCall& call) const {
  run_floating(call, [](auto x) { return std::tanh(x); });
}

void Relu::reference(const ReferenceCall& call) const { run_signed(call, ReluOf{}); }

void StopGradient::reference(const ReferenceCall& call) const {
  dispatch(call.results[0].dtype(), [&]<class T>() { map_unary<T, T>(call, [](T x) { return x; }); });
}

#ifdef PMAPTRAIN_REFERENCE_KERNELS

std::unique_ptr<CpuKernel> Exp::cpu(const CpuRequest&) const { return nullptr; }
std::unique_ptr<CpuKernel> Log::cpu(const CpuRequest&) const { return nullptr; }
std::unique_ptr<CpuKernel> Tanh::cpu(const CpuRequest&) const { return nullptr; }

#else

namespace {

// A function of f32 arrays; f64 stays with the reference. Every request is taken, so that an element's bits do not
// depend on how operands are stacked.
class VectorKernel final : public CpuKernel {
 public:
  using Function = void (*)(std::size_t n, const float* x, float* y);
  VectorKernel(const CpuRequest& request, Function function)
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
  Function function_;
};

std::unique_ptr<CpuKernel> vector_kernel(const CpuRequest& request, VectorKernel::Function function) {
  if (request.results[0].dtype != DType::f32) return nullptr;
  return std::make_unique<VectorKernel>(request, function);
}

}  // namespace

std::unique_ptr<CpuKernel> Exp::cpu(const CpuRequest& request) const { return vector_kernel(request, vector_exp); }
std::unique_ptr<CpuKernel> Log::cpu(const CpuRequest& request) const { return vector_kernel(request, vector_log); }
std::unique_ptr<CpuKernel> Tanh::cpu(const CpuRequest& request) const { return vector_kernel(request, vector_tanh); }

#endif  // PMAPTRAIN_REFERENCE_KERNELS

Cotangents Neg::derivative(VjpContext& context) const { return only(context.b.emit(Neg{}, {*context.cotangents[0]})); }

Cotangents Exp::derivative(VjpContext& context) const {
  return only(context.b.emit(Mul{}, {*context.cotangents[0], context.results[0]}));
}

Cotangents Log::derivative(VjpContext& context) const {
  return only(context.b.emit(Div{}, {*context.cotangents[0], context.operands[0]}));
}

// dy / 2y
Cotangents Sqrt::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Value dy = *context.cotangents[0];
  const Value half = b.emit(Mul{}, {dy, b.constant(b.type(dy).dtype, 0.5)});
  return only(b.emit(Div{}, {half, context.results[0]}));
}

// dy · (1 - y²)
Cotangents Tanh::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Value dy = *context.cotangents[0];
  const Value y = context.results[0];
  const Value slope = b.emit(Sub{}, {b.constant(b.type(dy).dtype, 1), b.emit(Mul{}, {y, y})});
  return only(b.emit(Mul{}, {dy, slope}));
}

// By the result, which is above 0 exactly where the operand is: the next layer keeps it anyway.
Cotangents Relu::derivative(VjpContext& context) const { return only(relu_cotangent(context)); }

Cotangents StopGradient::derivative(VjpContext&) const { return Cotangents(1); }

}  // namespace pmaptrain::ops
