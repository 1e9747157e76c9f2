#include "core/runtime/cpu/parallelism.h"

#include <algorithm>
#include <map>

#include "core/runtime/cpu/report.h"
#include "core/runtime/cpu/request.h"

namespace pmaptrain::cpu {
namespace {

class WorkCounter {
 public:
  WorkCounter(const Plan& plan, const BoundPlan& bound) : plan_(plan) {
    const InstructionRows report = report_of(plan, bound);
    for (std::size_t i = 0; i < report.rows.size(); ++i) {
      work_[report.instructions[i]] = report.rows[i].flops + report.rows[i].bytes;
    }
  }

  StageReport run(const Stage& stage) {
    out_ = {};
    out_.serial = out_.total = work_of(stage.every_worker);
    for (const ChunkList& chunked : stage.chunk_lists) add(work_of(chunked.instructions), extents_of(plan_, chunked));
    for (const Instruction& task : stage.tasks) add(work_.at(&task), extents_of(plan_, task));
    for (const PieceList& list : stage.piece_lists) add(work_of(list.instructions), extents_of(plan_, list));
    return out_;
  }

 private:
  double work_of(const std::vector<Instruction>& instructions) const {
    double work = 0;
    for (const Instruction& instruction : instructions) {
      work += work_.at(&instruction);
      if (const Loop* const loop = instruction.as<Loop>()) work += work_of(loop->body);
    }
    return work;
  }

  // Adds tasks that share `work` in proportion to the sizes of their extents.
  void add(double work, const std::vector<Extent>& tasks) {
    std::int64_t all = 0;
    for (const Extent& task : tasks) all += task.count;
    for (const Extent& task : tasks) {
      const double own = work * static_cast<double>(task.count) / static_cast<double>(all);
      out_.total += own;
      out_.largest_task = std::max(out_.largest_task, own);
    }
    out_.tasks += std::ssize(tasks);
  }

  const Plan& plan_;
  std::map<const Instruction*, double> work_;  // by instruction: the work over all pieces, chunks, parts and iterations
  StageReport out_;
};

}  // namespace

std::vector<StageReport> parallelism_of(const Plan& plan, const BoundPlan& bound) {
  WorkCounter counter(plan, bound);
  std::vector<StageReport> stages;
  for (const Stage& stage : plan.stages) stages.push_back(counter.run(stage));
  return stages;
}

}  // namespace pmaptrain::cpu
