#include "core/analysis/row_cut.h"

namespace pmaptrain {
namespace {

class BoundaryAxes {
 public:
  BoundaryAxes(const Program& program, const Facts& facts, const RowFacts& rows)
      : program_(program), facts_(facts), rows_(rows) {}

  AxisSet run() {
    for_each_equation(program_.equations, [&](const Equation& equation) { visit(equation); });
    for (const Output& output : program_.outputs) note_whole_read(output.value);
    for (const Input& input : program_.inputs) {
      if (input.next) note_whole_read(*input.next);
    }
    return axes_;
  }

 private:
  // Called for a value that an output, an update or an equation that does not run on pieces reads. If the value is
  // partial, the reader needs a sum for each device, so no piece may contain rows of two devices.
  void note_whole_read(Value value) {
    if (rows_.of(value) == RowKind::partial) axes_ = axes_ | rows_.axes;
  }

  void visit(const Equation& equation) {
    if (equation.op.is_loop() && communicates(equation)) {
      for (const Value yield : equation.regions.front().results) note_whole_read(yield);  // carries are complete
    }
    const bool on_rows = rows_.runs_on_rows(equation);
    const bool sums = is_sum_over_devices(equation.op);
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      const Value operand = equation.operands[i];
      if (on_rows) {
        if (rows_.of(operand) == RowKind::partial || rows_.of(operand) == RowKind::uniform)
          continue;  // each piece has its own instance
        const RowAccess how = row_access_of(program_, facts_, rows_, equation, i);
        if (how == RowAccess::whole) axes_ = axes_ | facts_.root_of(operand).axes;
        // The operand has only the rows of one device (all equal), so a piece must not be longer than that.
        if (how == RowAccess::any_rows) axes_ = axes_ | rows_.axes;
      } else if (sums && rows_.of(operand) == RowKind::partial) {
        // The collective adds all devices along its own axes, so these bound no piece.
        axes_ = axes_ | (program_.type(operand).varying - equation.op.axes());
      } else {
        note_whole_read(operand);
      }
    }
  }

  const Program& program_;
  const Facts& facts_;
  const RowFacts& rows_;
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

RowAccess row_access_of(const Program& program, const Facts& facts, const RowFacts& rows, const Equation& equation,
                        std::size_t operand) {
  if (equation.op.is_loop()) {
    const LoopRule loop = equation.op.loop();
    return operand < static_cast<std::size_t>(loop.consts + loop.carries) ? RowAccess::whole : RowAccess::same_rows;
  }
  if (!reads_rows(program, rows, equation, operand)) return RowAccess::whole;
  return rows.has_rows(program, facts, equation.operands[operand]) ? RowAccess::same_rows : RowAccess::any_rows;
}

AxisSet axes_that_bound_pieces(const Program& program, const Facts& facts, const RowFacts& rows) {
  return BoundaryAxes(program, facts, rows).run();
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
