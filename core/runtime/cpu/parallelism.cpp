#include "core/runtime/cpu/parallelism.h"

#include <algorithm>
#include <map>

#include "core/runtime/cpu/report.h"

namespace pmaptrain::cpu {
namespace {

class Walk {
 public:
  Walk(const Plan& plan, const Bound& bound) : plan_(plan) {
    const PlanReport report = report_of(plan, bound);
    for (std::size_t i = 0; i < report.rows.size(); ++i) {
      work_[report.instructions[i]] = report.rows[i].flops + report.rows[i].bytes;
    }
  }

  StageReport run(const Stage& stage) {
    out_ = {};
    out_.serial = out_.total = work_of(stage.once);
    for (const Chunked& chunked : stage.chunked) {
      const std::int64_t instances = plan_.program->mesh.group_size(chunked.axes);
      for (std::int64_t i = 0; i < chunked.chunks; ++i) {
        const std::int64_t size = chunk_begin(chunked, i + 1) - chunk_begin(chunked, i);
        add(work_of(chunked.instructions), size, chunked.elements * instances, instances);
      }
    }
    for (const Instruction& task : stage.tasks) {
      const Parts* const parts = task.as<Parts>();
      const std::int64_t rows = parts != nullptr ? plan_.program->type(parts->equation->results.front()).shape[0] : 1;
      const std::int64_t count = parts != nullptr ? parts->parts : 1;
      for (std::int64_t i = 0; i < count; ++i) {
        add(work_.at(&task), part_begin(rows, count, i + 1) - part_begin(rows, count, i), rows);
      }
    }
    for (const PieceList& list : stage.pieces) {
      const std::vector<Block>& pieces = plan_.cuts[static_cast<std::size_t>(list.cut)].pieces;
      std::int64_t all = 0;
      for (const Block& piece : pieces) all += piece.count;
      for (const Block& piece : pieces) add(work_of(list.instructions), piece.count, all);
    }
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

  // `times` tasks of `part` of `whole` each.
  void add(double work, std::int64_t part, std::int64_t whole, std::int64_t times = 1) {
    const double each = work * static_cast<double>(part) / static_cast<double>(whole);
    out_.total += each * static_cast<double>(times);
    out_.largest = std::max(out_.largest, each);
    out_.tasks += times;
  }

  const Plan& plan_;
  std::map<const Instruction*, double> work_;  // of all pieces, chunks, parts and iterations
  StageReport out_;
};

}  // namespace

std::vector<StageReport> parallelism_of(const Plan& plan, const Bound& bound) {
  Walk walk(plan, bound);
  std::vector<StageReport> stages;
  for (const Stage& stage : plan.stages) stages.push_back(walk.run(stage));
  return stages;
}

}  // namespace pmaptrain::cpu
