#include "core/runtime/cpu/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/analysis/cost.h"
#include "core/base/text.h"

namespace pmaptrain::cpu {
namespace {

using pmaptrain::to_string;

// Finds the kernel that implements each instruction. For different shapes an instruction may have several; the last one
// counts.
class KernelFinder {
 public:
  explicit KernelFinder(const BoundPlan& bound) {
    for (const BoundStage& stage : bound.stages()) {
      collect(stage.every_worker.commands, 1);
      std::map<const CommandList*, double> runs;
      for (const Task& task : stage.tasks) ++runs[task.list];
      for (const auto& [list, times] : runs) collect(list->commands, times);
    }
  }

  // layout_bytes: totals of one step in which the body of each loop runs once.
  struct Found {
    const CpuKernel* kernel = nullptr;
    std::map<std::string, double> layout_bytes;  // by the name of the array whose layout changes
  };
  std::map<const Instruction*, Found> found;

 private:
  void collect(const std::vector<Command>& commands, double times) {
    for (const Command& command : commands) {
      if (const RunKernel* const run = std::get_if<RunKernel>(&command.action);
          run != nullptr && run->kernel != nullptr) {
        Found& into = found[command.instruction];
        into.kernel = run->kernel;
        for (const LayoutChange& change : run->kernel->layout_changes()) {
          into.layout_bytes[change.of] += times * static_cast<double>(change.bytes);
        }
      }
      if (const RunLoop* const loop = std::get_if<RunLoop>(&command.action)) collect(loop->body, times);
    }
  }
};

class Reporter {
 public:
  Reporter(const Plan& plan, const BoundPlan& bound) : plan_(plan), kernels_(bound) {}

  InstructionRows run() {
    for (std::size_t number = 0; number < plan_.stages.size(); ++number) {
      const Stage& stage = plan_.stages[number];
      const std::int64_t runs = plan_.runs_per_step(number);
      const auto times = static_cast<double>(runs);
      const std::string prefix = plan_.stages.size() == 1
                                     ? ""
                                     : fmt::format("stage {} of {}{}, ", number + 1, plan_.stages.size(),
                                                   runs > 1 ? fmt::format(" ({} times)", runs) : "");
      add(stage.every_worker, prefix + "every worker for itself", 0, times);
      for (const ChunkList& chunked : stage.chunk_lists) {
        const std::int64_t chunks = chunked.chunks * plan_.share().instances(chunked.axes).count;
        add(chunked.instructions,
            prefix + fmt::format("{} of {} elements", counted(chunks, "chunk"), with_commas(chunked.elements)), 0,
            times);
      }
      add(stage.tasks, prefix + "one task each, or a task for each part", 0, times);
      for (const PieceList& list : stage.piece_lists) add(list.instructions, prefix + pieces_text(list), 0, times);
    }
    return std::move(out_);
  }

 private:
  std::string pieces_text(const PieceList& list) const {
    const Cut& cut = plan_.cuts[static_cast<std::size_t>(list.cut)];
    const std::string what = counted(cut.largest(), cut.rows_per_instance > 0 ? "row" : "instance");
    if (cut.pieces.size() == 1) return "one piece of " + what;
    return fmt::format("each of {} pieces of up to {}", cut.pieces.size(), what);
  }

  // Adds rows for instructions. `times` is the number of iterations of the loops around them.
  void add(const std::vector<Instruction>& instructions, const std::string& part, int depth, double times) {
    for (const Instruction& instruction : instructions) {
      InstructionReport row;
      row.section = part;
      row.depth = depth;
      row.equation = equation_of(instruction);
      const Cost cost = visit([&](const auto& i) { return describe(i, row); }, instruction);
      row.flops = times * cost.flops;
      row.bytes = times * cost.bytes;
      const auto found = kernels_.found.find(&instruction);
      if (found != kernels_.found.end()) {
        row.kernel = true;
        row.implementation = found->second.kernel->implementation();
        for (const auto& [of, bytes] : found->second.layout_bytes) {
          row.layout_changes.push_back(of);
          row.layout_bytes += times * bytes;
        }
      }
      out_.rows.push_back(std::move(row));
      out_.instructions.push_back(&instruction);
      if (const Loop* const loop = instruction.as<Loop>()) {
        add(loop->body, part, depth + 1, times * static_cast<double>(loop->iterations));
      }
    }
  }

  // ---- costs over all devices, in one iteration

  const Buffer& buffer(int index) const { return plan_.buffers[static_cast<std::size_t>(index)]; }
  double slices_of(const Buffer& b) const { return static_cast<double>(cpu::slices_of(b, plan_.share())); }
  double bytes_of(const Buffer& b) const { return slices_of(b) * static_cast<double>(b.slice_bytes()); }

  static std::string result_text(const std::vector<Type>& results) {
    if (results.empty()) return "";
    return std::string(to_string(results.front().dtype)) + to_string(results.front().shape) +
           (results.size() > 1 ? ", ..." : "");
  }
  static std::string text_of(const Buffer& b) {
    return std::string(to_string(b.dtype)) + "[" + std::to_string(b.elements) + "]";
  }

  Cost describe_op(const Equation& equation, InstructionReport& row) const {
    row.name = equation.op.name();
    row.result = result_text(types_of(*plan_.program, equation.results));
    return cost_of(*plan_.program, equation);
  }

  Cost describe(const Kernel& i, InstructionReport& row) const { return describe_op(*i.equation, row); }
  Cost describe(const RowSums& i, InstructionReport& row) const { return describe_op(*i.equation, row); }
  Cost describe(const ProductInParts& i, InstructionReport& row) const { return describe_op(*i.equation, row); }
  Cost describe(const Exchange& i, InstructionReport& row) const {
    Cost cost = describe_op(*i.equation, row);
    row.implementation = "the group's devices in order";
    return cost;
  }
  Cost describe(const Communicate& i, InstructionReport& row) const {
    row.name = i.equation->op.name();
    row.implementation = "messages between processes";
    row.result = text_of(buffer(i.values.front().to));
    double bytes = 0;
    for (const Communicate::Values& values : i.values) bytes += bytes_of(buffer(values.to));
    return {0, bytes};
  }
  Cost describe(const Copy& i, InstructionReport& row) const {
    row.name = row.implementation = "copy";
    row.result = text_of(buffer(i.to));
    return {0, 2 * bytes_of(buffer(i.to))};
  }
  Cost describe(const PackOperand& i, InstructionReport& row) const {
    row.name = "pack";
    row.implementation = "the layout that the kernels take";
    row.result = text_of(buffer(i.from));
    return {0, 2 * bytes_of(buffer(i.from))};
  }
  Cost describe(const ReducePartial& i, InstructionReport& row) const {
    const Buffer& operand = buffer(i.operand);
    row.name = i.equation->op.name();
    row.implementation = "the piece's slices in order";
    row.result = text_of(operand);
    const Accumulator& sums = plan_.accumulators[static_cast<std::size_t>(i.accumulator)];
    const double slices = std::max(slices_of(operand), pieces_of(sums));
    return {slices * static_cast<double>(operand.elements), 2 * slices * static_cast<double>(operand.slice_bytes())};
  }
  Cost describe(const ReduceCombine& i, InstructionReport& row) const {
    const Buffer& result = buffer(i.result);
    row.name = i.equation->op.name();
    row.implementation = i.step == ReduceCombine::Step::tree ? "the sums of the processes in a tree"
                         : i.accumulator >= 0                ? "pieces in order"
                                                             : "the group's slices in order";
    row.result = text_of(result);
    const double addends = i.accumulator >= 0 ? pieces_of(plan_.accumulators[static_cast<std::size_t>(i.accumulator)])
                                              : slices_of(buffer(i.operand));
    return {addends * static_cast<double>(result.elements),
            (addends + slices_of(result)) * static_cast<double>(result.slice_bytes())};
  }
  double pieces_of(const Accumulator& sums) const {
    return static_cast<double>(plan_.cuts[static_cast<std::size_t>(sums.cut)].own.count);
  }
  // Over all iterations of the loop, slice_copies copy each operand once.
  Cost describe(const Loop& i, InstructionReport& row) const {
    row.name = "loop";
    row.implementation = fmt::format("{} times, slices of {}", i.iterations,
                                     counted(static_cast<std::int64_t>(i.slice_copies.size()), "value"));
    row.result = i.slice_copies.empty() ? "" : text_of(buffer(i.slice_copies.front().to));
    double bytes = 0;
    for (const Copy& slice : i.slice_copies) bytes += 2 * bytes_of(buffer(slice.from));
    for (const Copy& copy : i.carry_copies) bytes += 2 * bytes_of(buffer(copy.to));
    return {0, bytes};
  }

  const Plan& plan_;
  const KernelFinder kernels_;
  InstructionRows out_;
};

}  // namespace

InstructionRows report_of(const Plan& plan, const BoundPlan& bound) { return Reporter(plan, bound).run(); }

std::map<const Equation*, std::vector<RankStep>> rank_steps_of(const Plan& plan) {
  if (plan.share().is_whole()) return {};
  const Facts facts = analyse(*plan.program);
  const RowFacts rows = find_row_facts(*plan.program, facts);
  const Distribution distribution(*plan.program, facts, rows, plan.share(), plan.options.private_copies);
  std::map<const Equation*, std::vector<RankStep>> all;
  for_each_equation(plan.program->equations, [&](const Equation& equation) {
    if (std::vector<RankStep> steps = distribution.steps(equation); !steps.empty()) all[&equation] = std::move(steps);
  });
  return all;
}

namespace {

// Calls f(communication, equation, times) for each exchange of messages, in order; a step runs it so many times.
template <class F>
void for_each_exchange(const BoundPlan& bound, F&& f) {
  for (std::size_t i = 0; i < bound.stages().size(); ++i) {
    const auto visit = [&](const CommandList& list) {
      for (const Command& command : list.commands) {
        if (const auto* const communication = std::get_if<RunCommunication>(&command.action)) {
          f(*communication, *command.instruction->as<Communicate>()->equation, bound.plan().runs_per_step(i));
        }
      }
    };
    const BoundStage& stage = bound.stages()[i];
    visit(stage.every_worker);
    for (const Task& task : stage.tasks) visit(*task.list);
  }
}

}  // namespace

std::size_t bytes_sent(const BoundPlan& bound) {
  std::size_t bytes = 0;
  for_each_exchange(bound, [&](const RunCommunication& exchange, const Equation&, std::int64_t times) {
    for (const RunCommunication::Message& message : exchange.sends) {
      bytes += message.bytes * static_cast<std::size_t>(times);
    }
  });
  return bytes;
}

void add_messages(const BoundPlan& bound, int process, std::vector<Rendezvous>& all) {
  for_each_exchange(bound, [&](const RunCommunication& exchange, const Equation& equation, std::int64_t times) {
    const auto add = [&](int from, int to, std::size_t bytes) {
      all.push_back({{from, to}, "a message of " + rendezvous_text(bytes, equation, static_cast<double>(times))});
    };
    for (const RunCommunication::Message& message : exchange.sends) add(process, message.process, message.bytes);
    for (const RunCommunication::Message& message : exchange.receives) add(message.process, process, message.bytes);
  });
}

}  // namespace pmaptrain::cpu
