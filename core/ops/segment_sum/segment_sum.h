// Sums of ranges of elements.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// x [n], floating; segments i64[s,2] -> [s] of x's type: element i is the sum of the elements segments[i,0] to
// segments[i,1] - 1. Indices outside x are ignored.
//
// On the CPU a sum is a binary tree: neighbours are added, then neighbouring sums, and an element without a neighbour
// is taken over. So a range of a segment that begins at a multiple of a power of two has its own subtree.
struct SegmentSum {
  static constexpr std::string_view name = "segment_sum";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr UseReference cpu{"it reads few elements"};
  static constexpr WholeRows row_rule{"a segment may be any of the rows"};
  static constexpr NoDerivative derivative{"it serves to monitor values; reduce_sum has a derivative"};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  void attributes(AttributeVisitor&) {}
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

}  // namespace pmaptrain::ops
