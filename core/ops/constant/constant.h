// The same number in every element.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"

namespace pmaptrain::ops {

// No operand. The value must be exact for integers and booleans (0 or 1), and within range for floating types.
struct Constant {
  static constexpr std::string_view name = "constant";
  static constexpr bool local = true;
  static constexpr WholeRows row_rule{"it has no operand"};
  static constexpr UseReference cpu{"it only fills memory"};
  static constexpr NoDerivative derivative{"it has no operand"};

  DType dtype = DType::f32;
  Shape shape = {};
  double value = 0;

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  void attributes(AttributeVisitor& visitor) {
    visitor.field("dtype", dtype);
    visitor.field("shape", shape);
    visitor.field("value", value);
  }
  void reference(const ReferenceCall& call) const;
};

}  // namespace pmaptrain::ops
