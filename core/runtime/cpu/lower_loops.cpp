// Lowering of loops. A loop without communication runs within a piece or on each worker. The body of a loop in which
// devices communicate is stages that run several times.
#include <algorithm>

#include "core/runtime/cpu/lowering.h"

namespace pmaptrain::cpu {

void Lowering::lower_loop(const Equation& equation) {
  const LoopRule loop = equation.op.loop();
  const Region& region = equation.regions.front();
  AxisSet axes = options_.private_copies ? all() : AxisSet();
  for (Value operand : equation.operands) axes = axes | type(operand).varying;
  for_each_equation(region.equations, [&](const Equation& inner) {
    for (Value result : inner.results) axes = axes | type(result).varying;
  });
  const bool on_rows = loop_body_ != nullptr ? is_on_rows(loop_info_) : out_.rows.runs_on_rows(equation);
  ValueInfo how;
  if (loop_body_ != nullptr) {
    how = loop_info_;
  } else if (on_rows) {
    how = info_on_rows(type(equation.results.front()));
  } else {
    how.axes = axes;
    how.storage = axes.empty() ? Storage::worker : Storage::varying;
    how.cut = cut_for(how);
  }
  std::vector<int> operands;
  for (Value operand : equation.operands) operands.push_back(root_to_read(operand, how));
  if (loop_body_ == nullptr) how.stage = first_stage(equation, operands, how);

  Loop out;
  std::vector<int> carried;
  std::vector<Copy> narrow;  // from a carry to a result that varies over fewer axes
  out.equation = &equation;
  out.iterations = loop.iterations;
  const auto consts = static_cast<std::size_t>(loop.consts), carries = static_cast<std::size_t>(loop.carries);
  for (std::size_t i = 0; i < region.params.size(); ++i) {
    const Value param = region.params[i];
    ValueInfo own = how;
    if (i < consts) {
      info(param) = out_.info(operands[i]);
    } else if (i < consts + carries) {
      const Value result = equation.results[i - consts];
      if (!axes.empty() && type(result).varying.empty() && !options_.private_copies) {
        refuse_mixed_carries(equation, result);
      }
      if (on_rows) own.kind = out_.rows.of(result), own.axes = {};
      define(result, own);
      int carry = result.id;
      if (loop_body_ == nullptr && !on_rows && stored_axes(type(result)) != how.axes) {
        carry = out_.add_like(carry);
        narrow.push_back({carry, result.id});
      }
      carried.push_back(carry);
      info(param) = out_.info(carry);
      out.carry_copies.push_back({operands[i], carry});
    } else {
      if (on_rows) own.kind = RowKind::rows;
      if (type(param).varying.empty() && !options_.private_copies) own.axes = {};
      define(param, own);
      out.slice_copies.push_back({operands[i], param.id});
    }
  }
  std::vector<Instruction>* const outer = std::exchange(loop_body_, &out.body);
  const ValueInfo outer_like = std::exchange(loop_info_, how);
  for (const Equation& inner : region.equations) lower_equation(inner);
  loop_body_ = outer;
  loop_info_ = outer_like;
  append_yields(equation, carried, out);
  add(std::move(out), how, how.stage);
  // A carry that varies over fewer axes than the loop has a slice for each instance of the loop. The result has a slice
  // for each position along the carry's own axes, so the carry is copied into it.
  for (const Copy& copy : narrow) {
    const ValueInfo own = info_by_instance(out_.type(copy.to), how.stage + 1);
    define(Value{copy.to}, own);
    out_.add(copy, own, own.stage, 0);
  }
}

void Lowering::append_yields(const Equation& equation, const std::vector<int>& carries, Loop& loop) {
  const std::vector<Replacement>& yields = out_.storage_facts.yields.at(&equation);
  std::vector<Copy> last;
  for (std::size_t i = 0; i < yields.size(); ++i) {
    if (yields[i].how == Replacement::How::none) continue;
    int from = info(yields[i].from).root;
    if (yields[i].how == Replacement::How::copy_twice) {
      const int aside = out_.add_like(carries[i]);
      loop.body.emplace_back(Copy{from, aside});
      from = aside;
    }
    last.push_back({from, carries[i]});
  }
  for (const Copy& copy : last) loop.body.emplace_back(copy);
}

void Lowering::refuse_mixed_carries(const Equation& equation, Value carry) const {
  throw Error(ExitStatus::usage, Diagnostic{"program",
                                            equation.origin->place,
                                            "loop: a carry of type " + to_string(type(carry), program_.mesh) +
                                                " is the same on every device, in a loop over values that vary",
                                            "pvary the carry before the loop (rule 7)",
                                            {}});
}

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
      // Rows that are equal on all devices are no work for every worker.
      const bool shares = type(param).varying.empty() && out_.rows.has_rows(program_, out_.facts, param);
      define(param,
             shares ? info_by_size(type(param), first_main_stage_) : info_by_instance(type(param), first_main_stage_));
      out_.add(Copy{operands[i], param.id, rule.iterations}, info(param), first_main_stage_, numel(type(param)));
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
