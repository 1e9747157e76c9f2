// The norms of many arrays that lie side by side.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// x [n], floating; chunks i64[c,2]; parts i64[p,2] -> the results of `norms` for each part, f64[p] and x's type [p].
// Part i is the chunks from parts[i,0] up to parts[i,1], chunk j the elements from chunks[j,0] up to chunks[j,1]; what
// lies outside of x or `chunks` is left out. Plans of GPUs have it in place of neighbouring `norms`.
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

// How many elements a block of threads takes up: of what a chunk has at most, where chunks are to give the bits of
// `norms`.
inline constexpr std::int64_t norm_elements = 8192;

}  // namespace pmaptrain::ops
