#include "core/analysis/row_cut.h"

namespace pmaptrain {
namespace {

class Crossing {
 public:
  Crossing(const Program& program, const Facts& facts, const Rows& rows)
      : program_(program), facts_(facts), rows_(rows) {}

  AxisSet run() {
    for_each_equation(program_.equations, [&](const Equation& equation) { visit(equation); });
    for (const Output& output : program_.outputs) add_sum(output.value);
    for (const Input& input : program_.inputs) {
      if (input.next) add_sum(*input.next);
    }
    return axes_;
  }

 private:
  // Called for a value that is read by an equation which does not run on pieces. If the value is partial, the reader
  // needs the sum over the rows of each device.
  void add_sum(Value value) {
    if (rows_.of(value) == RowKind::partial) axes_ = axes_ | rows_.axes;
  }

  void visit(const Equation& equation) {
    if (equation.op.is_loop() && communicates(equation)) {
      for (const Value yield : equation.regions.front().results) add_sum(yield);  // carries are complete
    }
    const bool on_rows = rows_.runs_on_rows(equation);
    const bool sums = is_sum(equation.op);
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      const Value operand = equation.operands[i];
      if (on_rows) {
        if (rows_.of(operand) == RowKind::partial || rows_.of(operand) == RowKind::uniform)
          continue;  // belongs to the piece
        const Reads how = reads_of(program_, facts_, rows_, equation, i);
        if (how == Reads::whole) axes_ = axes_ | facts_.root_of(operand).axes;
        // The operand has as many rows as one device, all equal.
        if (how == Reads::any_rows) axes_ = axes_ | rows_.axes;
      } else if (sums && rows_.of(operand) == RowKind::partial) {
        axes_ = axes_ | (program_.type(operand).varying - equation.op.axes());
      } else {
        add_sum(operand);
      }
    }
  }

  const Program& program_;
  const Facts& facts_;
  const Rows& rows_;
  AxisSet axes_;
};

bool reads_rows(const Program& program, const Rows& rows, const Equation& equation, std::size_t operand) {
  if (!equation.regions.empty()) return rows.of(equation.regions.front().params[operand]) == RowKind::rows;
  const RowKind result = rows.of(equation.results.front());
  if (result == RowKind::uniform || rows.of(equation.operands[operand]) == RowKind::partial) return false;
  const RowRule rule = equation.op.rows(types_of(program, equation.operands), types_of(program, equation.results));
  return result == RowKind::rows ? !rule.reads_all_of(operand) : rule.kind == RowRule::Kind::sums;
}

}  // namespace

Reads reads_of(const Program& program, const Facts& facts, const Rows& rows, const Equation& equation,
               std::size_t operand) {
  if (equation.op.is_loop()) {
    const LoopRule loop = equation.op.loop();
    return operand < static_cast<std::size_t>(loop.consts + loop.carries) ? Reads::whole : Reads::rows;
  }
  if (!reads_rows(program, rows, equation, operand)) return Reads::whole;
  return rows.has_rows(program, facts, equation.operands[operand]) ? Reads::rows : Reads::any_rows;
}

AxisSet axes_not_to_cross(const Program& program, const Facts& facts, const Rows& rows) {
  return Crossing(program, facts, rows).run();
}

std::int64_t span_within(const Mesh& mesh, AxisSet axes, AxisSet along) {
  std::int64_t span = 1;
  for (int axis = static_cast<int>(mesh.axes().size()) - 1; axis >= 0; --axis) {
    if (!axes.contains(axis)) continue;
    if (along.contains(axis) && mesh.size(axis) > 1) break;
    span *= mesh.size(axis);
  }
  return span;
}

}  // namespace pmaptrain
