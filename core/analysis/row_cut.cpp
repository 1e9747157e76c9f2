#include "core/analysis/row_cut.h"

namespace pmaptrain {
namespace {

class BoundaryAxes {
 public:
  BoundaryAxes(const Program& program, const Facts& facts, const RowFacts& rows, AxisSet varying)
      : program_(program), facts_(facts), rows_(rows), varying_(varying) {}

  AxisSet run() {
    for_each_equation(program_.equations, [&](const Equation& equation) { visit(equation); });
    // The reader of a sum over rows needs one for each device, so no piece may contain rows of two devices.
    for_each_whole_read(program_, rows_, [&](Value value) {
      if (is_addend(value)) axes_ = axes_ | varying_;
    });
    return axes_;
  }

 private:
  bool is_addend(Value value) const {
    return rows_.of(value) == RowKind::partial && program_.type(value).varying == varying_;
  }

  void visit(const Equation& equation) {
    const bool on_pieces =
        runs_on_pieces(rows_, equation) && program_.type(equation.results.front()).varying == varying_;
    const bool sums = is_sum_over_devices(equation.op);
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      const Value operand = equation.operands[i];
      // The collective adds all devices along its own axes, so these bound no piece.
      if (sums && is_addend(operand)) axes_ = axes_ | (varying_ - equation.op.axes());
      if (!on_pieces) continue;
      if (rows_.of(operand) == RowKind::partial || rows_.of(operand) == RowKind::uniform)
        continue;  // each piece has its own instance
      const AxisSet of_operand = facts_.root_of(operand).axes;
      switch (row_access_of(program_, facts_, rows_, equation, i)) {
        case RowAccess::whole: axes_ = axes_ | of_operand; break;
        // The operand has only the rows of one device (all equal), so a piece must not be longer than that.
        case RowAccess::any_rows: axes_ = axes_ | varying_; break;
        case RowAccess::same_rows: axes_ = axes_ | (varying_ - of_operand); break;
      }
    }
  }

  const Program& program_;
  const Facts& facts_;
  const RowFacts& rows_;
  const AxisSet varying_;
  AxisSet axes_;
};

bool reads_rows(const Program& program, const RowFacts& rows, const Equation& equation, std::size_t operand) {
  if (!equation.regions.empty()) return rows.of(equation.regions.front().params[operand]) == RowKind::rows;
  const RowKind result = rows.of(equation.results.front());
  if (result == RowKind::uniform || rows.of(equation.operands[operand]) == RowKind::partial) return false;
  const RowRule rule = equation.op.rows(types_of(program, equation.operands), types_of(program, equation.results));
  return result == RowKind::rows ? !rule.reads_all_of(operand) : rule.kind == RowRule::Kind::sums;
}

}  // namespace

bool runs_on_pieces(const RowFacts& rows, const Equation& equation) {
  return rows.runs_on_rows(equation) && !reads_other_devices(equation.op.rules().communication);
}

RowAccess row_access_of(const Program& program, const Facts& facts, const RowFacts& rows, const Equation& equation,
                        std::size_t operand) {
  if (equation.op.is_loop()) {
    const LoopRule loop = equation.op.loop();
    return operand < static_cast<std::size_t>(loop.consts + loop.carries) ? RowAccess::whole : RowAccess::same_rows;
  }
  if (!reads_rows(program, rows, equation, operand)) return RowAccess::whole;
  return rows.has_rows(program, facts, equation.operands[operand]) ? RowAccess::same_rows : RowAccess::any_rows;
}

AxisSet axes_that_bound_pieces(const Program& program, const Facts& facts, const RowFacts& rows, AxisSet varying) {
  return BoundaryAxes(program, facts, rows, varying).run();
}

std::int64_t contiguous_instances(const Mesh& mesh, AxisSet axes, AxisSet along) {
  std::int64_t span = 1;
  for (int axis = static_cast<int>(mesh.axes().size()) - 1; axis >= 0; --axis) {
    if (!axes.contains(axis)) continue;
    if (along.contains(axis) && mesh.size(axis) > 1) break;
    span *= mesh.size(axis);
  }
  return span;
}

}  // namespace pmaptrain
