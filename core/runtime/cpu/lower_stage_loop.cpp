// Lowering of loops in which devices communicate: their bodies are stages that run several times.
#include <algorithm>

#include "core/runtime/cpu/lowering.h"

namespace pmaptrain::cpu {

void Lowering::lower_stage_loop(const Equation& equation) {
  const LoopRule rule = equation.op.loop();
  const Region& region = equation.regions.front();
  const auto consts = static_cast<std::size_t>(rule.consts), carries = static_cast<std::size_t>(rule.carries);
  std::vector<int> operands;
  for (const Value operand : equation.operands) operands.push_back(root_to_read(operand, -1));

  // Carries are initialised in a stage of their own, so that nothing from before the loop runs in its iterations.
  const auto before = static_cast<int>(out_.stages.size());
  first_main_stage_ = before + 1;
  out_.stages.resize(static_cast<std::size_t>(first_main_stage_) + 1);
  const std::size_t number = out_.loops.size();
  out_.loops.push_back({&equation, static_cast<std::size_t>(first_main_stage_), 0});
  for (std::size_t i = 0; i < region.params.size(); ++i) {
    const Value param = region.params[i];
    if (i < consts) {
      info(param) = out_.info(operands[i]);
    } else if (i < consts + carries) {
      const Value result = equation.results[i - consts];
      define(result, info_by_size(type(result), before));
      out_.add(Copy{operands[i], result.id}, info(result), before, numel(type(result)));
      info(result).stage = first_main_stage_;  // its readers, too, run in each iteration
      info(param) = info(result);
    } else {
      define(param, info_by_instance(type(param), first_main_stage_));
      out_.add(Copy{operands[i], param.id, rule.iterations}, info(param), first_main_stage_, 0);
    }
  }
  for (const Equation& inner : region.equations) lower_equation(inner);
  lower_stage_yields(equation);
  out_.loops[number].end = out_.stages.size();
  first_main_stage_ = static_cast<int>(out_.stages.size());
  for (const Value result : equation.results) info(result).stage = first_main_stage_;
}

void Lowering::lower_stage_yields(const Equation& equation) {
  using How = Replacement::How;
  const std::vector<Replacement>& yields = out_.storage_facts.yields.at(&equation);
  std::vector<int> sources;
  sources.reserve(yields.size());
  for (const Replacement& yield : yields) sources.push_back(root_to_read(yield.from, -1));
  const auto last = static_cast<int>(out_.stages.size());
  const bool aside = std::any_of(yields.begin(), yields.end(), [](const auto& y) { return y.how == How::copy_twice; });
  for (std::size_t i = 0; i < yields.size(); ++i) {
    if (yields[i].how == How::none) continue;
    const ValueInfo carry = info(yields[i].to);
    const std::int64_t elements = numel(type(yields[i].to));
    int from = sources[i];
    if (yields[i].how == How::copy_twice) {
      from = out_.add_like(carry.root);
      out_.add(Copy{sources[i], from}, carry, last, elements);
    }
    out_.add(Copy{from, carry.root}, carry, last + (aside ? 1 : 0), elements);
  }
}

}  // namespace pmaptrain::cpu
