// Constants of a program.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// Has no operand. Either every element is `value` (a splat), or `values` has a number for each element in row-major
// order, and `value` is 0. A number must be exact for integers and booleans (0 or 1), and within range for floating
// types.
struct Constant {
  static constexpr std::string_view name = "constant";
  static constexpr bool local = true;
  static constexpr WholeRows row_rule{"it has no operand"};
  static constexpr UseReference cpu{"it only fills memory"};
  static constexpr NoDerivative derivative{"it has no operand"};

  DType dtype = DType::f32;
  Shape shape = {};
  double value = 0;
  std::vector<double> values = {};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  void attributes(AttributeVisitor& visitor) {
    visitor.field("dtype", dtype);
    visitor.field("shape", shape);
    if (values.empty() || !visitor.leaves_out_usual()) visitor.field("value", value);
    visitor.seldom("values", values, {});
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  // The value of every element; empty if `values` is used.
  std::optional<double> splat() const { return values.empty() ? std::optional(value) : std::nullopt; }
};

// The value of every element of `op`; empty if it is no constant or uses `values`.
std::optional<double> splat_of(const Op& op);

}  // namespace pmaptrain::ops
