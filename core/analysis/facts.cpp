#include "core/analysis/facts.h"

#include <algorithm>

#include "core/graph/type_list.h"

namespace pmaptrain {
namespace {

class Analyser {
 public:
  explicit Analyser(const Program& program) : program_(program) {
    facts_.values.resize(program.types.size());
    for (std::size_t i = 0; i < program.types.size(); ++i) facts_.values[i].domain.axes = program.types[i].varying;
  }

  Facts run() {
    for (const Input& input : program_.inputs) {
      define(input.value, 0);
      at(input.value).domain.rows = input.group == Group::batch && !program_.type(input.value).shape.empty();
    }
    for (const Equation& equation : program_.equations) visit(equation);
    ++number_;
    for (const Output& output : program_.outputs) use(output.value);
    for (const Input& input : program_.inputs) {
      if (input.next) use(*input.next);
    }
    return std::move(facts_);
  }

 private:
  ValueFacts& at(Value value) { return facts_.values[static_cast<std::size_t>(value.id)]; }
  ValueFacts& root(Value value) { return facts_.values[static_cast<std::size_t>(at(value).root)]; }

  void define(Value value, int stage) {
    ValueFacts& facts = at(value);
    facts.root = value.id;
    facts.stage = stage;
    facts.defined = facts.last_use = number_;
  }

  void use(Value value) {
    ++at(value).uses;
    ValueFacts& memory = root(value);
    memory.last_use = std::max(memory.last_use, number_);
  }

  int stage_of(const Equation& equation) {
    int stage = 0;
    for (Value operand : equation.operands) stage = std::max(stage, at(operand).stage);
    const bool meets = equation.op.rules().communication != Communication::none &&
                       equation.op.rules().communication != Communication::coordinate;
    return stage + (meets ? 1 : 0);
  }

  void visit(const Equation& equation) {
    ++number_;
    for (Value operand : equation.operands) use(operand);
    if (equation.op.is_loop()) return visit_loop(equation);
    const int stage = stage_of(equation);
    const bool rows = keeps_rows(equation);
    for (Value result : equation.results) {
      define(result, stage);
      if (equation.op.rules().view) alias(result, equation.operands.front());
      at(result).domain.rows = rows;
    }
    // A region that is no loop computes inside of its equation.
    for (const Region& region : equation.regions) visit_inside(region, stage);
  }

  void visit_inside(const Region& region, int stage) {
    for (Value param : region.params) define(param, stage);
    for (const Equation& equation : region.equations) {
      for (Value operand : equation.operands) ++at(operand).uses;
      for (Value result : equation.results) define(result, stage);
    }
    for (Value result : region.results) ++at(result).uses;
  }

  void alias(Value result, Value operand) { at(result).root = at(operand).root; }

  bool keeps_rows(const Equation& equation) {
    const std::span<const Type> operands = operand_types_.of(program_, equation.operands);
    const std::span<const Type> results = result_types_.of(program_, equation.results);
    const RowRule rule = equation.op.rows(operands, results);
    if (rule.kind != RowRule::Kind::keeps) return false;
    bool any = false;
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      if (rule.reads_all_of(i)) continue;
      if (!at(equation.operands[i]).domain.rows) return false;
      any = true;
    }
    return any;
  }

  // The body runs several times: what it reads from outside lives until its end.
  void visit_loop(const Equation& equation) {
    const LoopRule loop = equation.op.loop();
    const Region& region = equation.regions.front();
    const auto consts = static_cast<std::size_t>(loop.consts);
    const int stage = stage_of(equation);
    for (std::size_t i = 0; i < region.params.size(); ++i) {
      define(region.params[i], stage);
      if (i < consts) alias(region.params[i], equation.operands[i]);
      const bool slice = i >= consts + static_cast<std::size_t>(loop.carries);
      at(region.params[i]).domain.rows = slice && at(equation.operands[i]).domain.rows;
    }
    for (const Equation& inner : region.equations) visit(inner);
    for (Value result : region.results) use(result);
    for (Value operand : equation.operands) {
      root(operand).last_use = std::max(root(operand).last_use, number_);
    }
    for (Value param : region.params) root(param).last_use = std::max(root(param).last_use, number_);
    for (Value result : equation.results) define(result, stage);
  }

  const Program& program_;
  Facts facts_;
  TypeList operand_types_, result_types_;
  int number_ = 0;
};

}  // namespace

Facts analyse(const Program& program) { return Analyser(program).run(); }

bool may_overwrite(const Program& program, const Facts& facts, const Equation& equation, int number, Value operand,
                   Value result) {
  if (!equation.op.rules().elementwise || facts.root_of(operand).defined == 0) return false;
  const Type &from = program.type(operand), &to = program.type(result);
  return numel(from) == numel(to) && size_of(from.dtype) == size_of(to.dtype) &&
         facts.of(operand).domain.axes == facts.of(result).domain.axes && facts.dies_at(operand, number);
}

}  // namespace pmaptrain
