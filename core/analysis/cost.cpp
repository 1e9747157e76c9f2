#include "core/analysis/cost.h"

#include <algorithm>

#include "core/graph/type_list.h"

namespace pmaptrain {
namespace {

class Walk {
 public:
  enum class Devices { all, one };
  // Counts work on values that vary along none of `without`.
  explicit Walk(const Program& program, AxisSet without = {}, Devices devices = Devices::all)
      : program_(program), without_(without), devices_(devices) {}

  // `times`: the number of times that these equations run. `inside`: whether they are inside a fused equation.
  void add(const std::vector<Equation>& equations, double times, bool inside) {
    for (const Equation& equation : equations) add(equation, times, inside);
  }

  void add(const Equation& equation, double times, bool inside) {
    if (equation.op.rules().view) return;
    const double repeated = equation.op.is_loop() ? static_cast<double>(equation.op.loop().iterations) : 1;
    for (const Region& region : equation.regions) {
      add(region.equations, times * repeated, inside || !equation.op.is_loop());
    }
    add_itself(equation, times, inside);
  }

  Cost total;

 private:
  void add_itself(const Equation& equation, double times, bool inside) {
    const std::span<const Type> operands = operand_types_.of(program_, equation.operands);
    const std::span<const Type> results = result_types_.of(program_, equation.results);
    const Cost cost = equation.op.cost(program_.mesh, operands, results);
    AxisSet varying;
    for (const Type& type : operands) varying = varying | type.varying;
    for (const Type& type : results) varying = varying | type.varying;
    if (!(varying & without_).empty()) return;
    const std::int64_t devices = devices_ == Devices::all ? program_.mesh.group_size(varying) : 1;
    const double executions = times * static_cast<double>(devices);
    total.flops += executions * cost.flops;
    if (!inside) total.bytes += executions * cost.bytes;
    for (const auto& [axes, bytes] : cost.wire) total.wire.emplace_back(axes, times * bytes);
  }

  const Program& program_;
  const AxisSet without_;
  const Devices devices_;
  TypeList operand_types_, result_types_;
};

}  // namespace

Cost cost_of(const Program& program) {
  Walk walk(program);
  walk.add(program.equations, 1, false);
  return std::move(walk.total);
}

double flops_without(const Program& program, AxisSet axes) {
  Walk walk(program, axes);
  walk.add(program.equations, 1, false);
  return walk.total.flops;
}

double flops_of_device(const Program& program, AxisSet without) {
  Walk walk(program, without, Walk::Devices::one);
  walk.add(program.equations, 1, false);
  return walk.total.flops;
}

double work_of(const Program& program) {
  const Cost cost = cost_of(program);
  return cost.flops + cost.bytes;
}

Cost cost_of(const Program& program, const Equation& equation) {
  Walk walk(program);
  walk.add(equation, 1, false);
  return std::move(walk.total);
}

double flops_inside(const Program& program, const Equation& equation) {
  TypeList operands, results;
  double flops = 0;
  for (const Region& region : equation.regions) {
    for (const Equation& inner : region.equations) {
      flops +=
          inner.op.cost(program.mesh, operands.of(program, inner.operands), results.of(program, inner.results)).flops;
    }
  }
  return flops;
}

}  // namespace pmaptrain
