#include "core/analysis/row_cut.h"

#include <numeric>

namespace pmaptrain {
namespace {

// The axes that bound the rows of values which vary over `varying`, because `equation` reads an operand with them that
// is no sum over rows.
AxisSet bounds_of_read(const Program& program, const Facts& facts, const RowFacts& rows, const Equation& equation,
                       std::size_t operand, AxisSet varying) {
  const AxisSet of_operand = facts.root_of(equation.operands[operand]).axes;
  switch (row_access_of(program, facts, rows, equation, operand)) {
    case RowAccess::whole: return of_operand;
    // The operand has only the rows of one device (all equal), so no more rows than these are read with it.
    case RowAccess::any_rows: return varying;
    case RowAccess::same_rows: break;
  }
  return varying - of_operand;
}

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
      axes_ = axes_ | bounds_of_read(program_, facts_, rows_, equation, i, varying_);
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

// Sums with the same axes are a set of a forest of disjoint sets. The root of a set has its axes. The forest has
// uniform values too: a launch reads one instance of them, so their axes bound the sums that it makes.
class BoundaryOfSums {
 public:
  BoundaryOfSums(const Program& program, const Facts& facts, const RowFacts& rows,
                 const std::map<std::int32_t, PackedSum>& packed)
      : program_(program),
        facts_(facts),
        rows_(rows),
        packed_(packed),
        parents_(program.types.size()),
        axes_(program.types.size()) {
    std::iota(parents_.begin(), parents_.end(), std::size_t{0});
  }

  std::vector<AxisSet> run() {
    for (const auto& output : program_.outputs) is_read_whole(output.value);
    for (const Input& input : program_.inputs) {
      if (input.next) is_read_whole(*input.next);
    }
    // What bounds a carry of a loop may come after what reads it.
    do {
      changed_ = false;
      for_each_equation(program_.equations, [&](const Equation& equation) { visit(equation); });
    } while (changed_);
    std::vector<AxisSet> found(axes_.size());
    for (std::size_t i = 0; i < found.size(); ++i) found[i] = axes_[root(i)];
    return found;
  }

 private:
  void visit(const Equation& equation) {
    if (is_sum_over_devices(equation.op)) return visit_sum_over_devices(equation);
    if (equation.op.rules().packs && packed_.contains(equation.results.front().id)) return;
    if (equation.op.is_loop()) return visit_loop(equation);
    if (!runs_on_pieces(rows_, equation)) {
      for (const Value operand : equation.operands) is_read_whole(operand);
      return;
    }
    const Value first = equation.results.front();
    for (const Value result : equation.results) join(first, result);
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      const RowKind kind = rows_.of(equation.operands[i]);
      if (kind == RowKind::partial) join(first, equation.operands[i]);
      if (kind == RowKind::uniform) bound(first, axes_[root(static_cast<std::size_t>(equation.operands[i].id))]);
      if (kind == RowKind::partial || kind == RowKind::uniform) continue;
      bound(first, bounds_of_read(program_, facts_, rows_, equation, i, program_.type(first).varying));
    }
    for (const Region& region : equation.regions) {
      for (std::size_t i = 0; i < region.results.size(); ++i) join(equation.results[i], region.results[i]);
      for (std::size_t i = 0; i < region.params.size(); ++i) join(equation.operands[i], region.params[i]);
    }
  }

  // The collective adds all devices along its own axes, so these bound nothing.
  void visit_sum_over_devices(const Equation& equation) {
    const auto is_added = [&](Value value) { bound(value, program_.type(value).varying - equation.op.axes()); };
    for (const Value operand : equation.operands) {
      const auto packed = packed_.find(operand.id);
      if (packed == packed_.end()) {
        is_added(operand);
      } else {
        for (const Value each : packed->second.pack->operands) is_added(each);
      }
    }
  }

  // What a loop over stages carries is complete. A carry of another loop has the axes of what it begins with, of what
  // an iteration makes of it, and of the result.
  void visit_loop(const Equation& equation) {
    const Region& region = equation.regions.front();
    const LoopRule rule = equation.op.loop();
    const bool on_pieces = runs_on_pieces(rows_, equation);
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      const RowKind kind = rows_.of(equation.operands[i]);
      if (!on_pieces) is_read_whole(equation.operands[i]);
      if (kind == RowKind::whole) bound(region.params[i], facts_.root_of(equation.operands[i]).axes);
      join(equation.operands[i], region.params[i]);
    }
    for (std::size_t i = 0; i < region.results.size(); ++i) {
      const bool is_carry = i < static_cast<std::size_t>(rule.carries);
      const auto operand = static_cast<std::size_t>(rule.consts) + i;
      join(equation.results[i], region.results[i]);
      if (is_carry) join(equation.results[i], region.params[operand]);
      if (!on_pieces) is_read_whole(region.results[i]);
    }
  }

  std::size_t root(std::size_t value) {
    while (parents_[value] != value) value = parents_[value] = parents_[parents_[value]];
    return value;
  }
  bool is_bounded(Value value) const {
    return rows_.of(value) == RowKind::partial || rows_.of(value) == RowKind::uniform;
  }
  void is_read_whole(Value value) { bound(value, program_.type(value).varying); }
  void bound(Value sum, AxisSet axes) {
    if (!is_bounded(sum)) return;
    AxisSet& of = axes_[root(static_cast<std::size_t>(sum.id))];
    changed_ = changed_ || !of.contains(axes);
    of = of | axes;
  }
  void join(Value a, Value b) {
    if (!is_bounded(a) || !is_bounded(b)) return;
    const std::size_t to = root(static_cast<std::size_t>(a.id)), from = root(static_cast<std::size_t>(b.id));
    changed_ = changed_ || axes_[to] != axes_[from];
    axes_[to] = axes_[to] | axes_[from];
    parents_[from] = to;
  }

  const Program& program_;
  const Facts& facts_;
  const RowFacts& rows_;
  const std::map<std::int32_t, PackedSum>& packed_;
  std::vector<std::size_t> parents_;
  std::vector<AxisSet> axes_;
  bool changed_ = false;
};

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

std::vector<AxisSet> axes_that_bound_sums(const Program& program, const Facts& facts, const RowFacts& rows,
                                          const std::map<std::int32_t, PackedSum>& packed) {
  return BoundaryOfSums(program, facts, rows, packed).run();
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
