// The norms of many contiguous arrays.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// x [n], floating; chunks i64[c,2]; parts i64[p,2] -> the results of `norms` for each part, f64[p] and [p] of x's type.
// Part i consists of the chunks parts[i,0] to parts[i,1] - 1, and chunk j of the elements chunks[j,0] to chunks[j,1] -
// 1. Indices outside x or `chunks` are ignored. Plans for GPUs use it in place of several `norms`.
struct NormsOfParts {
  static constexpr std::string_view name = "norms_of_parts";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr WholeRows row_rule{"a part may be any of the rows"};
  static constexpr UseReference cpu{"no program for the CPU has it"};
  static constexpr NoDerivative derivative{"it serves to monitor values; reduce_sum of mul has a derivative"};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  void attributes(AttributeVisitor&) {}
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

// The number of elements that a block of threads processes. Chunks of this size give the same results as `norms`, bit
// for bit.
inline constexpr std::int64_t norm_elements = 8192;

}  // namespace pmaptrain::ops
