// The common part of the elementwise ops. An op defines a functor and a derivative; the family defines type, cost, text
// form and kernels.
//
// Shapes are equal, except that a scalar operand [] applies to every element. A result may use the memory of an operand
// of the same size.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"
#include "core/kernel/vector_math.h"
#include "core/ops/elementwise/functors.h"
#include "core/ops/elementwise/loops.h"
#include "core/ops/support/gpu.h"

namespace pmaptrain::ops {

enum class ElementKinds { floating, signed_numbers, numbers, any };

// The type of an op on `operands` values of equal element type: boolean for comparisons, else the operands' element
// type. Throws TypeError (rule 6).
std::vector<Type> infer_elementwise(std::string_view op, const InferContext& context, std::size_t operands,
                                    ElementKinds takes, bool compares);
std::vector<Type> infer_select(const InferContext& context);

Cost elementwise_cost(std::span<const Type> operands, std::span<const Type> results);
// Every row of the result reads all of a scalar operand.
RowRule elementwise_rows(std::span<const Type> operands);

// A kernel with the same loop that fused chains use (core/ops/elementwise/vector.h). Null if there is no loop for the
// element type.
std::unique_ptr<CpuKernel> make_elementwise_kernel(const Op& op, const CpuRequest& request);

// An op has a name, the supported kinds of element types `takes`, a functor `Of` and, optionally, a vectorized f32
// function `vectors`.
template <class Self>
struct Elementwise {
  static constexpr bool local = true;
  static constexpr bool elementwise = true;

  std::vector<Type> infer(const InferContext& context) const {
    using F = typename Self::Of;
    if constexpr (std::is_invocable_v<F, float>) {
      return infer_elementwise(Self::name, context, 1, Self::takes,
                               std::is_same_v<std::invoke_result_t<F, float>, bool>);
    } else if constexpr (std::is_invocable_v<F, float, float>) {
      constexpr bool compares = std::is_same_v<std::invoke_result_t<F, float, float>, bool>;
      return infer_elementwise(Self::name, context, 2, Self::takes, compares);
    } else {
      return infer_elementwise(Self::name, context, 3, Self::takes, false);
    }
  }
  Cost cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
    return elementwise_cost(operands, results);
  }
  RowRule row_rule(std::span<const Type> operands, std::span<const Type>) const { return elementwise_rows(operands); }
  void attributes(AttributeVisitor&) {}
  void reference(const ReferenceCall& call) const { map<typename Self::Of>(call); }
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const {
    return make_elementwise_kernel(static_cast<const Self&>(*this), request);
  }
  GpuKernel gpu(const GpuRequest& request) const { return generated_kernel(request); }
};

}  // namespace pmaptrain::ops
