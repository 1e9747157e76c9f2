// The microbatch loop: runs its region a fixed number of times, carrying values from one iteration to the next.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "core/graph/builder.h"
#include "core/kernel/cpu.h"

namespace pmaptrain::ops {

// Operands are consts (the same in every iteration), carries (replaced by what the region yields) and slices (iteration
// k sees the k-th of `iterations` equal parts along dimension 0). The region has a parameter for each, and yields the
// next carries, of exactly their types. Results are the carries after the last iteration.
struct Loop {
  std::int64_t iterations = 1;
  std::int64_t consts = 0;
  std::int64_t carries = 0;

  static constexpr std::string_view name = "loop";
  static constexpr bool local = false;
  static constexpr Communication communication = Communication::none;  // its region's
  static constexpr WholeRows row_rule{"its iterations cut dimension 0; the analysis follows its region"};
  static constexpr bool region = true;
  static constexpr RuntimeOp cpu{"the runtime runs its region"};
  static constexpr NoDerivative derivative{"differentiate inside its region: the loop only accumulates"};
  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh&, std::span<const Type>, std::span<const Type>) const { return {}; }  // its region's
  LoopRule loop_rule() const { return {iterations, consts, carries}; }
  void attributes(AttributeVisitor& v) {
    v.field("iterations", iterations);
    v.field("consts", consts);
    v.field("carries", carries);
  }
};

using LoopBody = std::function<std::vector<Value>(std::span<const Value> consts, std::span<const Value> carries,
                                                  std::span<const Value> slices)>;

// Appends a loop; returns the final carries. Each slice's dimension 0 divides by `iterations`.
std::vector<Value> loop(Builder& b, std::int64_t iterations, std::span<const Value> consts,
                        std::span<const Value> carries, std::span<const Value> slices, const LoopBody& body);

}  // namespace pmaptrain::ops
