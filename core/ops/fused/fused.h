// A chain of elementwise equations, computed in one pass over memory: intermediate values stay in the cache.
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

// The region has a parameter for each operand, of its type, and yields the results. All results have the same number of
// elements n. The equations are elementwise ops, casts, constants of one value, views, and broadcasts along
// neighbouring dimensions. A value in the region has n elements or one; only broadcasts may read operands of other
// sizes. So element i of a result depends only on element i of operands with n elements, and a result may use the
// memory of such an operand.
struct Fused {
  static constexpr std::string_view name = "fused";
  static constexpr bool local = true;
  static constexpr bool elementwise = true;
  static constexpr bool region = true;
  static constexpr NoDerivative derivative{"equations are fused after differentiation"};

  std::vector<Type> infer(const InferContext& context) const;
  // Counts memory traffic. The arithmetic is counted for the equations of the region.
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  // Keeps rows if all results, and all operands with n elements, have the same number of rows, and all other operands
  // are scalars.
  RowRule row_rule(std::span<const Type> operands, std::span<const Type> results) const;
  void attributes(AttributeVisitor&) {}
  // Runs equation by equation. Operands and results with n elements may be one-dimensional ranges of their elements.
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

// The pattern of a broadcast: element i of the result is element (i / inner) % size of the operand.
struct Spread {
  std::int64_t inner = 1;
  std::int64_t size = 1;
};

// Null if the operand's dimensions are not adjacent in the result, whatever the size of dimension 0.
std::optional<Spread> spread_of(const Broadcast& broadcast);

// Throws TypeError (rules 7 and 8), in which `op` has the region, unless the equation may be part of a chain over n
// elements with these parameters. `types` are those of all values.
void expect_in_chain(std::string_view op, const Equation& equation, std::int64_t n, std::span<const Value> params,
                     std::span<const Type> types);

}  // namespace pmaptrain::ops
