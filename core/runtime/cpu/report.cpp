#include "core/runtime/cpu/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/text.h"

namespace pmaptrain {
namespace {

bool any_varies(const std::vector<Type>& types) {
  return std::any_of(types.begin(), types.end(), [](const Type& type) { return !type.varying.empty(); });
}

double bytes_of(const std::vector<Type>& types) {
  double total = 0;
  for (const Type& type : types) total += static_cast<double>(bytes(type));
  return total;
}

std::string result_of(const Step& step) {
  if (step.result_types.empty()) return "";
  const Type& type = step.result_types.front();
  return std::string(to_string(type.dtype)) + to_string(type.shape) + (step.result_types.size() > 1 ? ", ..." : "");
}

class Lister {
 public:
  explicit Lister(const CpuExecutor& executor)
      : plan_(executor.plan()), kernels_(executor.kernels()), workers_(executor.workers()) {
    for (std::size_t stage = 0; stage < plan_.stages.size(); ++stage) {
      add(plan_.stages[stage].invariant, part_of(stage, true), 0, 1);
      add(plan_.stages[stage].varying, part_of(stage, false), 0, 1);
    }
  }

  std::vector<PlanRow> rows;

 private:
  std::string part_of(std::size_t stage, bool invariant) const {
    const std::string number =
        plan_.stages.size() > 1 ? fmt::format("stage {} of {}, ", stage + 1, plan_.stages.size()) : std::string();
    if (invariant) return number + "once (every worker what is small, what is larger in ranges)";
    const auto blocks = static_cast<std::int64_t>(plan_.blocks.size());
    if (blocks == 1) return number + "the block of all devices";
    const std::int64_t at_once = plan_.pools.blocks_at_once(workers_, blocks);
    return number + fmt::format("each of {} blocks of up to {}{}", blocks,
                                counted(plan_.blocks.front().count, "device"),
                                at_once > 1 ? fmt::format(", up to {} at once", at_once) : "");
  }

  // `times`: how often loops repeat the steps.
  void add(const std::vector<Step>& steps, const std::string& part, int depth, double times) {
    for (const Step& step : steps) {
      InstructionReport row;
      row.equation = step.equation;
      row.part = part;
      row.depth = depth;
      row.result = result_of(step);
      name(step, row);
      const Cost cost = cost_of(step);
      const bool everywhere = any_varies(step.operand_types) || any_varies(step.result_types);
      const double devices = everywhere ? static_cast<double>(plan_.program->mesh.devices()) : 1;
      row.flops = times * devices * cost.flops;
      row.bytes = times * devices * cost.bytes;
      if (const auto kernel = kernels_.find(&step); kernel != kernels_.end()) {
        for (const LayoutChange& change : kernel->second.layout_changes) {
          row.layout_bytes += times * static_cast<double>(change.bytes);
          row.layout_changes.push_back(change.of);
        }
      }
      rows.push_back({&step, std::move(row)});
      add(step.before, part, depth + 1, times);
      add(step.body, part, depth + 1, times * static_cast<double>(step.iterations));
    }
  }

  void name(const Step& step, InstructionReport& row) const {
    if (step.equation != nullptr) row.name = step.equation->op.name();
    switch (step.kind) {
      case Step::Kind::kernel: {
        const auto kernel = kernels_.find(&step);
        row.kernel = kernel != kernels_.end();
        row.implementation = row.kernel ? kernel->second.implementation : "nothing to do";
        break;
      }
      case Step::Kind::copy: row.name = row.implementation = "copy"; break;
      case Step::Kind::accumulate: row.implementation = "the block's devices in order"; break;
      case Step::Kind::combine: row.implementation = "blocks in order"; break;
      case Step::Kind::exchange: row.implementation = "the group's devices in order"; break;
      case Step::Kind::loop:
        row.name = "loop";
        row.implementation = fmt::format("{} times, slices of {}", step.iterations,
                                         counted(static_cast<std::int64_t>(step.slices.size()), "value"));
        break;
    }
  }

  // Of one device and one iteration.
  Cost cost_of(const Step& step) const {
    Cost cost;
    switch (step.kind) {
      case Step::Kind::kernel:
        cost = step.equation->op.cost(plan_.program->mesh, step.operand_types, step.result_types);
        for (const Region& region : step.equation->regions) add_region(region, cost);
        break;
      case Step::Kind::exchange:
        cost = step.equation->op.cost(plan_.program->mesh, step.operand_types, step.result_types);
        break;
      case Step::Kind::copy:
      case Step::Kind::loop:  // each iteration copies its slices, which are all of the operands in the end
        cost.bytes = 2 * bytes_of(step.operand_types);
        break;
      case Step::Kind::accumulate: {
        const Buffer& operand = plan_.buffers[static_cast<std::size_t>(step.operands.front())];
        cost.flops = static_cast<double>(operand.elements);
        cost.bytes = 2 * static_cast<double>(operand.slice_bytes());
        break;
      }
      case Step::Kind::combine: {
        const Accumulator& sums = plan_.accumulators[static_cast<std::size_t>(step.accumulator)];
        const auto elements = static_cast<double>(sums.elements), blocks = static_cast<double>(plan_.blocks.size());
        cost.flops = blocks * elements;
        cost.bytes = (blocks + 1) * elements * static_cast<double>(size_of(sums.dtype));
        break;
      }
    }
    return cost;
  }

  // A chain's equations compute; what they pass on to each other stays in the cache.
  void add_region(const Region& region, Cost& cost) const {
    const Program& program = *plan_.program;
    for (const Equation& equation : region.equations) {
      if (equation.op.rules().view) continue;
      const Cost inner =
          equation.op.cost(program.mesh, types_of(program, equation.operands), types_of(program, equation.results));
      cost.flops += inner.flops;
    }
  }

  const Plan& plan_;
  const std::map<const Step*, KernelInfo> kernels_;
  const int workers_;
};

}  // namespace

std::vector<PlanRow> rows_of(const CpuExecutor& executor) { return Lister(executor).rows; }

}  // namespace pmaptrain
