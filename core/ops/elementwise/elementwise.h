// What the elementwise ops share. Each is a functor and a derivative; type, cost, text form and CPU kernel are the
// family's.
//
// Shapes are equal, except that an operand of shape [] is then the same for every element. A result may be the memory
// of one of its operands of the same size.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"

namespace pmaptrain::ops {

enum class Domain { floating, signed_numbers, numbers, any };

// Types of ops with one operand, and with two of equal element type. `result` is the operand's element type unless
// given. Throw TypeError (rule 6).
std::vector<Type> infer_unary(std::string_view op, const InferContext& context, Domain domain);
std::vector<Type> infer_binary(std::string_view op, const InferContext& context, Domain domain);
std::vector<Type> infer_compare(std::string_view op, const InferContext& context, Domain domain);
std::vector<Type> infer_select(const InferContext& context);

Cost elementwise_cost(std::span<const Type> operands, std::span<const Type> results);

// One call of the reference over all devices' elements, where every operand is either stacked and of the result's
// shape, or a scalar that all devices share. Null where that does not hold: a call for each device is right then.
std::unique_ptr<CpuKernel> make_elementwise_kernel(std::shared_ptr<const void> op, ReferenceFunction function,
                                                   const CpuRequest& request);

template <class Self>
struct Elementwise {
  static constexpr bool local = true;
  static constexpr bool elementwise = true;

  Cost cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
    return elementwise_cost(operands, results);
  }
  void attributes(AttributeVisitor&) {}
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const {
    const auto function = [](const void* op, const ReferenceCall& call) {
      static_cast<const Self*>(op)->reference(call);
    };
    return make_elementwise_kernel(std::make_shared<Self>(), function, request);
  }
};

}  // namespace pmaptrain::ops
