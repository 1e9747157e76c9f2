// A chain of elementwise equations, computed in one pass over memory: values between them stay in the cache.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/program.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"
#include "core/ops/broadcast/broadcast.h"

namespace pmaptrain::ops {

// The region has a parameter for each operand, of its type, and yields the results, all of one number of elements, n.
// Its equations are elementwise ops, casts, constants of one value, views, and broadcasts along neighbouring
// dimensions. A value in it has n elements or one, except that an operand of another size may be read by broadcasts. So
// element i of a result needs element i of the operands of n elements only, and a result may be the memory of one of
// those.
struct Fused {
  static constexpr std::string_view name = "fused";
  static constexpr bool local = true;
  static constexpr bool elementwise = true;
  static constexpr bool region = true;
  static constexpr NoDerivative derivative{"equations are fused after differentiation"};

  std::vector<Type> infer(const InferContext& context) const;
  // The traffic; arithmetic is counted for the equations of the region.
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  // Keeps rows where all operands and results of n elements have the same number of rows and every other operand is a
  // scalar.
  RowRule row_rule(std::span<const Type> operands, std::span<const Type> results) const;
  void attributes(AttributeVisitor&) {}
  // Equation by equation. Operands and results of n elements may be ranges of their elements, in one dimension.
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

// How a broadcast repeats its operand: element i of the result is element (i / inner) % size of the operand.
struct Spread {
  std::int64_t inner = 1;
  std::int64_t size = 1;
};

// Null where the operand's dimensions do not stay adjacent, whatever the size of dimension 0.
std::optional<Spread> spread_of(const Broadcast& broadcast);

}  // namespace pmaptrain::ops
