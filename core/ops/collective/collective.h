// Collectives over named axes, and the ops that change a value's set of axes without communication.
//
// The table of docs/program.md, rule 3: each collective has its transpose beside it, as in JAX's shard_map with
// varying-axes checking. Members of a group stand in mesh order. `axes` may name several axes where that is said.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/graph/builder.h"
#include "core/kernel/cpu.h"

namespace pmaptrain::ops {

inline constexpr RuntimeOp carried_by_runtime{"it moves values between logical devices, which the runtime does"};
inline constexpr WholeRows devices_meet{"it reads values of other logical devices"};

// One operand. The same value, with a type that varies over `axes` too. Transpose: psum.
struct Pvary {
  AxisSet axes;

  static constexpr std::string_view name = "pvary";
  static constexpr bool local = false;
  static constexpr Communication communication = Communication::none;
  static constexpr bool view = true;
  static constexpr RuntimeOp cpu{"it changes the type only"};
  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh&, std::span<const Type>, std::span<const Type>) const { return {}; }
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type> operands, std::span<const Type>) const {
    return keeps_rows_if(!operands[0].shape.empty());
  }
  void attributes(AttributeVisitor& v) { v.field("axes", axes); }
};

// Any number of operands, each summed over the group along `axes` (several allowed). Transpose: pvary.
struct Psum {
  AxisSet axes;

  static constexpr std::string_view name = "psum";
  static constexpr bool local = false;
  static constexpr WholeRows row_rule = devices_meet;
  static constexpr Communication communication = Communication::sum;
  static constexpr RuntimeOp cpu = carried_by_runtime;
  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  void attributes(AttributeVisitor& v) { v.field("axes", axes); }
  void exchange(const CollectiveCall& call) const;
};

// Any number of operands; the largest (smallest) over the group. No transpose.
struct Pmax {
  AxisSet axes;

  static constexpr std::string_view name = "pmax";
  static constexpr bool local = false;
  static constexpr WholeRows row_rule = devices_meet;
  static constexpr Communication communication = Communication::max;
  static constexpr RuntimeOp cpu = carried_by_runtime;
  static constexpr NoDerivative derivative{"which device holds the largest value is not differentiable"};
  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  void attributes(AttributeVisitor& v) { v.field("axes", axes); }
  void exchange(const CollectiveCall& call) const;
};

struct Pmin {
  AxisSet axes;

  static constexpr std::string_view name = "pmin";
  static constexpr bool local = false;
  static constexpr WholeRows row_rule = devices_meet;
  static constexpr Communication communication = Communication::min;
  static constexpr RuntimeOp cpu = carried_by_runtime;
  static constexpr NoDerivative derivative{"which device holds the smallest value is not differentiable"};
  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  void attributes(AttributeVisitor& v) { v.field("axes", axes); }
  void exchange(const CollectiveCall& call) const;
};

// One operand. The group's values concatenated along dimension `dim` in group order. Transpose: psum_scatter.
struct AllGather {
  AxisSet axes;
  std::int64_t dim = 0;

  static constexpr std::string_view name = "all_gather";
  static constexpr bool local = false;
  static constexpr WholeRows row_rule = devices_meet;
  static constexpr Communication communication = Communication::gather;
  static constexpr RuntimeOp cpu = carried_by_runtime;
  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  void attributes(AttributeVisitor& v) {
    v.field("axes", axes);
    v.field("dim", dim);
  }
  void exchange(const CollectiveCall& call) const;
};

// One operand. As all_gather, and the same on every member, whose type says so: the result does not vary over the axes.
// Transpose: all_slice.
struct AllGatherInvariant {
  AxisSet axes;
  std::int64_t dim = 0;

  static constexpr std::string_view name = "all_gather_invariant";
  static constexpr bool local = false;
  static constexpr WholeRows row_rule = devices_meet;
  static constexpr Communication communication = Communication::gather;
  static constexpr RuntimeOp cpu = carried_by_runtime;
  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  void attributes(AttributeVisitor& v) {
    v.field("axes", axes);
    v.field("dim", dim);
  }
  void exchange(const CollectiveCall& call) const;
};

// One operand, which does not vary over the axes. Of its equal parts along `dim`, each member keeps its own, in group
// order; nothing is sent. Transpose: all_gather_invariant.
struct AllSlice {
  AxisSet axes;
  std::int64_t dim = 0;

  static constexpr std::string_view name = "all_slice";
  static constexpr bool local = false;
  static constexpr WholeRows row_rule{"a device reads a part of the rows that is its own"};
  static constexpr Communication communication = Communication::slice;
  static constexpr RuntimeOp cpu{"which part a device reads, the plan says"};
  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  void attributes(AttributeVisitor& v) {
    v.field("axes", axes);
    v.field("dim", dim);
  }
  void exchange(const CollectiveCall& call) const;
};

// One operand. Each member cuts its value along `split` into equal parts, sends the i-th to member i, and concatenates
// the received parts along `concat`, in group order. Transpose: the same with split and concat exchanged.
struct AllToAll {
  AxisSet axes;
  std::int64_t split = 0;
  std::int64_t concat = 0;

  static constexpr std::string_view name = "all_to_all";
  static constexpr bool local = false;
  static constexpr WholeRows row_rule = devices_meet;
  static constexpr Communication communication = Communication::all_to_all;
  static constexpr RuntimeOp cpu = carried_by_runtime;
  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  void attributes(AttributeVisitor& v) {
    v.field("axes", axes);
    v.field("split", split);
    v.field("concat", concat);
  }
  void exchange(const CollectiveCall& call) const;
};

// One operand. The sum over the group, of which each member keeps its own part along `dim`: the same bits as psum and
// all_slice. Transpose: all_gather.
struct PsumScatter {
  AxisSet axes;
  std::int64_t dim = 0;

  static constexpr std::string_view name = "psum_scatter";
  static constexpr bool local = false;
  static constexpr WholeRows row_rule = devices_meet;
  static constexpr Communication communication = Communication::scatter;
  static constexpr RuntimeOp cpu = carried_by_runtime;
  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  void attributes(AttributeVisitor& v) {
    v.field("axes", axes);
    v.field("dim", dim);
  }
  void exchange(const CollectiveCall& call) const;
};

// One operand. Pair (from, to) sends a member's value to another; a member that receives nothing has zeros. Each
// member sends and receives at most once. Transpose: the pairs reversed.
struct Ppermute {
  AxisSet axes;
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;

  static constexpr std::string_view name = "ppermute";
  static constexpr bool local = false;
  static constexpr WholeRows row_rule = devices_meet;
  static constexpr Communication communication = Communication::permute;
  static constexpr RuntimeOp cpu = carried_by_runtime;
  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  void attributes(AttributeVisitor& v) {
    v.field("axes", axes);
    v.field("pairs", pairs);
  }
  void exchange(const CollectiveCall& call) const;
};

// No operand. Each device's coordinate along one axis, an i32 scalar that varies over it.
struct AxisIndex {
  AxisSet axes;

  static constexpr std::string_view name = "axis_index";
  static constexpr bool local = false;
  static constexpr WholeRows row_rule{"its result is a scalar"};
  static constexpr Communication communication = Communication::coordinate;
  static constexpr RuntimeOp cpu{"every device's coordinates are constants of the plan"};
  static constexpr NoDerivative derivative{"its result is an integer"};
  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh&, std::span<const Type>, std::span<const Type>) const { return {}; }
  void attributes(AttributeVisitor& v) { v.field("axes", axes); }
};

}  // namespace pmaptrain::ops
