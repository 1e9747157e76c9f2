#include "core/analysis/facts.h"

#include <algorithm>

namespace pmaptrain {
namespace {

class Analyser {
 public:
  explicit Analyser(const Program& program) : program_(program) {
    facts_.values.resize(program.types.size());
    for (std::size_t i = 0; i < program.types.size(); ++i) facts_.values[i].axes = program.types[i].varying;
  }

  Facts run() {
    for (const Input& input : program_.inputs) define(input.value, 0);
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

  void define(Value value, int collective_depth) {
    ValueFacts& facts = at(value);
    facts.root = value.id;
    facts.collective_depth = collective_depth;
    facts.defined_at = facts.last_use = number_;
  }

  void use(Value value) {
    ++at(value).uses;
    ValueFacts& memory = root(value);
    memory.last_use = std::max(memory.last_use, number_);
  }

  int collective_depth_of(const Equation& equation) {
    int collective_depth = 0;
    for (Value operand : equation.operands) collective_depth = std::max(collective_depth, at(operand).collective_depth);
    return collective_depth + (reads_other_devices(equation.op.rules().communication) ? 1 : 0);
  }

  void visit(const Equation& equation) {
    ++number_;
    for (Value operand : equation.operands) use(operand);
    if (equation.op.is_loop()) return visit_loop(equation);
    const int collective_depth = collective_depth_of(equation);
    for (Value result : equation.results) {
      define(result, collective_depth);
      if (equation.op.rules().view || equation.op.rules().unpacks) alias(result, equation.operands.front());
    }
    // The region of any other op, such as `fused`, runs inside its equation.
    for (const Region& region : equation.regions) visit_inside(region, collective_depth);
  }

  void visit_inside(const Region& region, int collective_depth) {
    for (Value param : region.params) define(param, collective_depth);
    for (const Equation& equation : region.equations) {
      for (Value operand : equation.operands) ++at(operand).uses;
      for (Value result : equation.results) define(result, collective_depth);
    }
    for (Value result : region.results) ++at(result).uses;
  }

  void alias(Value result, Value operand) { at(result).root = at(operand).root; }

  // The body runs several times, so values that it reads from outside are needed until its end.
  void visit_loop(const Equation& equation) {
    const LoopRule loop = equation.op.loop();
    const Region& region = equation.regions.front();
    const auto consts = static_cast<std::size_t>(loop.consts);
    const int collective_depth = collective_depth_of(equation);
    for (std::size_t i = 0; i < region.params.size(); ++i) {
      define(region.params[i], collective_depth);
      if (i < consts) alias(region.params[i], equation.operands[i]);
    }
    for (const Equation& inner : region.equations) visit(inner);
    for (Value result : region.results) use(result);
    for (Value operand : equation.operands) {
      root(operand).last_use = std::max(root(operand).last_use, number_);
    }
    for (Value param : region.params) root(param).last_use = std::max(root(param).last_use, number_);
    for (Value result : equation.results) define(result, collective_depth);
  }

  const Program& program_;
  Facts facts_;
  int number_ = 0;  // of the current equation
};

}  // namespace

Facts analyse(const Program& program) { return Analyser(program).run(); }

}  // namespace pmaptrain
