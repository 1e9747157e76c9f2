#include "core/analysis/rows.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/analysis/cost.h"
#include "core/graph/type_list.h"

namespace pmaptrain {
namespace {

// Finds the facts of a whole program for one number of rows and one set of axes.
class Trial {
 public:
  Trial(const Program& program, const Facts& facts, std::int64_t count, AxisSet axes)
      : program_(program), facts_(facts), splat_(program.types.size()) {
    rows_.count = count;
    rows_.axes = axes;
    rows_.kinds.assign(program.types.size(), RowKind::whole);
    rows_.all_rows_equal.assign(program.types.size(), false);
  }

  void run() {
    for (const Input& input : program_.inputs) {
      if (input.group == Group::batch && is_cut_shape(input.value)) batch_.insert(input.value.id);
    }
    visit_program(program_.equations, 1);
  }

  double work = 0;
  RowFacts take() { return std::move(rows_); }

 private:
  enum class Inside { program, loop, chain };

  RowKind& kind(Value value) { return rows_.kinds[static_cast<std::size_t>(value.id)]; }
  std::optional<double>& splat(Value value) { return splat_[static_cast<std::size_t>(value.id)]; }
  const Type& type(Value value) const { return program_.type(value); }

  bool is_cut_shape(Value value) const { return rows_.is_cut_shape(type(value)); }

  double work_of(const Equation& equation) const {
    const Cost cost = cost_of(program_, equation);
    return cost.flops + cost.bytes;
  }

  // Whether an equation can read `value` row by row: it is of kind `rows`, or its rows are equal. Outside of chains, it
  // may also be a complete value with rows on each device. In a chain, a parameter for such a value has the kind
  // `rows`.
  bool gives_rows(Value value, Inside inside) {
    if (kind(value) == RowKind::rows || equal(value)) return true;
    return inside != Inside::chain && rows_.has_rows(program_, facts_, value);
  }
  bool comes_from_batch(Value value) const { return batch_.contains(facts_.of(value).root) && is_cut_shape(value); }

  // Visits equations that run `times` times in a step, one by one.
  void visit_program(const std::vector<Equation>& equations, double times) {
    for (const Equation& equation : equations) {
      if (equation.op.is_loop() && communicates(equation)) {
        visit_stage_loop(equation, times);
        continue;
      }
      visit(equation, Inside::program);
      if (rows_.runs_on_rows(equation)) work += times * work_of(equation);
    }
  }

  // The equations of a loop in which devices communicate are cut one by one. Carries are complete at the end of each
  // iteration.
  void visit_stage_loop(const Equation& equation, double times) {
    const LoopRule loop = equation.op.loop();
    const Region& region = equation.regions.front();
    for (std::size_t i = 0; i < region.params.size(); ++i) {
      const Value operand = equation.operands[i], param = region.params[i];
      if (i < static_cast<std::size_t>(loop.consts)) {
        if (kind(operand) == RowKind::rows) kind(param) = RowKind::rows;
        splat(param) = splat(operand);
        if (equal(operand)) set_equal(param);
      } else if (i >= static_cast<std::size_t>(loop.consts + loop.carries) && is_cut_shape(param)) {
        batch_.insert(param.id);
      }
    }
    visit_program(region.equations, times * static_cast<double>(loop.iterations));
  }

  void visit(const Equation& equation, Inside inside) {
    if (equation.op.is_loop()) return visit_loop(equation);
    const std::optional<double> number = splat_of(equation);
    const bool are_equal = number || (!equation.operands.empty() && has_equal_rows(equation));
    for (Value result : equation.results) {
      splat(result) = number;
      if (are_equal) set_equal(result);
    }
    if (equation.op.rules().view) return visit_view(equation, inside);
    if (!equation.op.local()) return visit_collective(equation);
    if (equation.operands.empty()) return;
    if (!equation.regions.empty()) return visit_chain(equation, inside);
    const RowKind found = kind_of(equation, inside);
    for (Value result : equation.results) kind(result) = found;
  }

  // The number that every element of the result equals; nothing if it is unknown or elements differ.
  std::optional<double> splat_of(const Equation& equation) {
    const OpRules& rules = equation.op.rules();
    if (rules.splat != nullptr) return rules.splat(equation.op.data());
    return rules.view ? splat(equation.operands.front()) : std::nullopt;
  }

  bool equal(Value value) const { return rows_.all_rows_equal[static_cast<std::size_t>(value.id)]; }
  void set_equal(Value value) { rows_.all_rows_equal[static_cast<std::size_t>(value.id)] = true; }

  // Whether all rows of the results are equal. They are if the equation reads every operand whole, or its rows are
  // equal.
  bool has_equal_rows(const Equation& equation) {
    if (!equation.regions.empty() || (!equation.op.local() && !equation.op.rules().view)) return false;
    const RowRule rule =
        equation.op.rows(operand_types_.of(program_, equation.operands), result_types_.of(program_, equation.results));
    if (rule.kind != RowRule::Kind::keeps) return false;
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      if (!rule.reads_all_of(i) && !equal(equation.operands[i])) return false;
    }
    return true;
  }

  // Rows may get more axes, as those of an activation that divided layers read. They are then equal along these.
  void visit_view(const Equation& equation, Inside inside) {
    const Value operand = equation.operands.front(), result = equation.results.front();
    const RowKind of = kind(operand);
    if (of == RowKind::whole || (of != RowKind::rows && type(operand).varying != type(result).varying)) return;
    if (of == RowKind::rows && kind_of(equation, inside) != RowKind::rows) return;
    kind(result) = of;
  }

  // Row i of an elementwise reduction over devices needs row i of all of them, if these have the same examples.
  void visit_collective(const Equation& equation) {
    const Communication how = equation.op.rules().communication;
    if (how != Communication::sum && how != Communication::max && how != Communication::min) return;
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      const Value result = equation.results[i];
      if (kind(equation.operands[i]) == RowKind::rows && is_cut_shape(result)) kind(result) = RowKind::rows;
    }
  }

  RowKind kind_of(const Equation& equation, Inside inside) {
    bool partial = false, uniform = true;
    for (Value operand : equation.operands) {
      partial = partial || kind(operand) == RowKind::partial;
      uniform = uniform && !comes_from_batch(operand) &&
                (kind(operand) == RowKind::uniform || kind(operand) == RowKind::whole);
    }
    if (partial) return adds_up(equation) ? RowKind::partial : RowKind::whole;
    const RowRule rule =
        equation.op.rows(operand_types_.of(program_, equation.operands), result_types_.of(program_, equation.results));
    const bool cut = std::all_of(equation.results.begin(), equation.results.end(),
                                 [&](Value result) { return is_cut_shape(result); });
    if (rule.kind == RowRule::Kind::keeps && cut && keeps(equation, rule, inside)) return RowKind::rows;
    if (uniform) return inside == Inside::program ? RowKind::whole : RowKind::uniform;
    if (rule.kind == RowRule::Kind::sums) {
      const bool all = std::all_of(equation.operands.begin(), equation.operands.end(),
                                   [&](Value operand) { return is_cut_shape(operand) && gives_rows(operand, inside); });
      return all ? RowKind::partial : RowKind::whole;
    }
    return RowKind::whole;
  }

  // Whether the results are addends because all operands are: the op adds them, or packs them into a bucket, which is
  // then an addend of the bucket of sums. Zeros are addends of any sum.
  bool adds_up(const Equation& equation) {
    const OpRules& rules = equation.op.rules();
    return (rules.adds || rules.packs) &&
           std::all_of(equation.operands.begin(), equation.operands.end(),
                       [&](Value operand) { return kind(operand) == RowKind::partial || splat(operand) == 0.0; });
  }

  bool keeps(const Equation& equation, const RowRule& rule, Inside inside) {
    bool any = inside != Inside::program;  // in a region, no operand has to have rows
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      const Value operand = equation.operands[i];
      if (!rule.reads_all_of(i)) {
        if (!gives_rows(operand, inside)) return false;
        any = any || kind(operand) == RowKind::rows || comes_from_batch(operand);
      } else if (kind(operand) == RowKind::rows) {
        return false;  // each row of the result would need all rows of the operand
      }
    }
    return any;
  }

  // The ids of the values in a chain that an equation reads whole, itself or through the equations after it. An example
  // is the mean of each channel, which is broadcast to the positions of a batch. Dimension 0 of such a value does not
  // count rows, even where it has the same size.
  std::set<std::int32_t> read_whole_in(const Region& chain) {
    std::set<std::int32_t> whole;
    for (auto inner = chain.equations.rbegin(); inner != chain.equations.rend(); ++inner) {
      const bool all = std::any_of(inner->results.begin(), inner->results.end(),
                                   [&](Value result) { return whole.contains(result.id); });
      const RowRule rule =
          inner->op.rows(operand_types_.of(program_, inner->operands), result_types_.of(program_, inner->results));
      for (std::size_t i = 0; i < inner->operands.size(); ++i) {
        if (all || (rule.kind == RowRule::Kind::keeps && rule.reads_all_of(i))) whole.insert(inner->operands[i].id);
      }
    }
    return whole;
  }

  void visit_chain(const Equation& equation, Inside inside) {
    const Region& region = equation.regions.front();
    bool any = inside != Inside::program;
    const std::set<std::int32_t> whole = read_whole_in(region);
    for (std::size_t i = 0; i < region.params.size(); ++i) {
      const Value operand = equation.operands[i], param = region.params[i];
      const bool complete = kind(operand) == RowKind::whole && !whole.contains(param.id);
      const bool cut =
          kind(operand) == RowKind::rows || (complete && is_cut_shape(operand) && gives_rows(operand, inside));
      any = any || kind(operand) == RowKind::rows || kind(operand) == RowKind::partial ||
            (cut && comes_from_batch(operand));
      kind(param) = cut ? RowKind::rows : kind(operand) == RowKind::partial ? RowKind::partial : RowKind::uniform;
      splat(param) = splat(operand);
      if (equal(operand)) set_equal(param);
    }
    bool fits = any;
    for (const Equation& inner : region.equations) {
      visit(inner, Inside::chain);
      if (inner.operands.empty() || !type(inner.results.front()).varying.contains(rows_.axes)) {
        for (Value result : inner.results) kind(result) = RowKind::uniform;
      } else if (inner.op.rules().view && kind(inner.results.front()) == RowKind::whole) {
        kind(inner.results.front()) = kind(inner.operands.front());  // a pvary has the kind of its operand
      }
      fits = fits && std::none_of(inner.results.begin(), inner.results.end(),
                                  [&](Value result) { return kind(result) == RowKind::whole; });
    }
    if (fits) {
      for (std::size_t i = 0; i < region.results.size(); ++i) kind(equation.results[i]) = kind(region.results[i]);
      // One call computes all results, so all must be of one kind, and on the same pieces.
      const Value first = equation.results.front();
      fits = std::all_of(equation.results.begin(), equation.results.end(), [&](Value result) {
        return kind(result) == kind(first) && type(result).varying == type(first).varying;
      });
    }
    if (fits) return;
    forget(equation);
  }

  void visit_loop(const Equation& equation) {
    const LoopRule loop = equation.op.loop();
    const Region& region = equation.regions.front();
    const auto consts = static_cast<std::size_t>(loop.consts), carries = static_cast<std::size_t>(loop.carries);
    const AxisSet axes = carries > 0 ? type(equation.results.front()).varying : AxisSet();  // of the pieces
    bool fits = carries > 0 && axes.contains(rows_.axes), any = false;
    for (std::size_t i = 0; i < region.params.size(); ++i) {
      const Value operand = equation.operands[i], param = region.params[i];
      splat(param) = i < consts ? splat(operand) : std::nullopt;
      if (i < consts) {
        kind(param) = kind(operand);
        if (equal(operand)) set_equal(param);
        fits = fits && kind(operand) != RowKind::partial && kind(operand) != RowKind::rows;
      } else if (i < consts + carries) {
        fits = fits && type(operand).varying == axes && splat(operand) == 0.0;
        kind(param) = RowKind::partial;
      } else {
        // A slice: its operand must be complete, and each device must have an instance of its own.
        fits = fits && is_cut_shape(param) && kind(operand) == RowKind::whole && type(param).varying == axes &&
               facts_.root_of(operand).axes == axes;
        kind(param) = RowKind::rows;
        any = true;
      }
    }
    for (const Equation& inner : region.equations) {
      visit(inner, Inside::loop);
      if (!fits) break;
      const bool replicated = type(inner.results.front()).varying != axes;
      const bool complete = inner.operands.empty() || inner.op.rules().view;
      fits = replicated || complete || rows_.runs_on_rows(inner);
    }
    for (std::size_t i = 0; fits && i < region.results.size(); ++i) {
      fits = kind(region.results[i]) == RowKind::partial;
      kind(equation.results[i]) = RowKind::partial;
    }
    if (!fits || !any) forget(equation);
  }

  // Marks the equation, and everything inside it, as whole.
  void forget(const Equation& equation) {
    for (Value result : equation.results) kind(result) = RowKind::whole;
    for (const Region& region : equation.regions) {
      for (Value param : region.params) kind(param) = RowKind::whole;
      for (const Equation& inner : region.equations) forget(inner);
    }
  }

  const Program& program_;
  const Facts& facts_;
  RowFacts rows_;
  std::vector<std::optional<double>> splat_;  // by value: see splat_of()
  std::set<std::int32_t> batch_;              // ids of the batch inputs with this number of rows
  TypeList operand_types_, result_types_;
};

// Calls f(equation) for the equations that are cut one by one: those of the program, and of loops in which devices
// communicate.
template <class F>
void for_each_cut_equation(const std::vector<Equation>& equations, F&& f) {
  for (const Equation& equation : equations) {
    f(equation);
    if (equation.op.is_loop() && communicates(equation)) for_each_cut_equation(equation.regions.front().equations, f);
  }
}

}  // namespace

bool RowFacts::runs_on_rows(const Equation& equation) const {
  return std::any_of(equation.results.begin(), equation.results.end(),
                     [&](Value result) { return of(result) != RowKind::whole; });
}

bool RowFacts::has_rows(const Program& program, const Facts& facts, Value value) const {
  return of(value) == RowKind::rows ||
         (of(value) == RowKind::whole && is_cut_shape(program.type(value)) && facts.root_of(value).axes.contains(axes));
}

std::vector<AxisSet> RowFacts::axis_sets(const Program& program) const {
  std::vector<AxisSet> sets;
  for_each_cut_equation(program.equations, [&](const Equation& equation) {
    for (const Value result : equation.results) {
      const AxisSet varying = program.type(result).varying;
      if (of(result) == RowKind::whole || std::count(sets.begin(), sets.end(), varying) > 0) continue;
      sets.push_back(varying);
    }
  });
  return sets;
}

void RowFacts::forget(const Program& program, AxisSet varying) {
  const auto make_whole = [&](Value value) { kinds[static_cast<std::size_t>(value.id)] = RowKind::whole; };
  for_each_cut_equation(program.equations, [&](const Equation& equation) {
    const bool is_loop_of_stages = equation.op.is_loop() && communicates(equation);
    for (const Region& region : equation.regions) {
      if (!is_loop_of_stages && program.type(equation.results.front()).varying != varying) continue;
      for (const Value param : region.params) {
        if (!is_loop_of_stages || program.type(param).varying == varying) make_whole(param);
      }
      if (is_loop_of_stages) continue;
      for_each_equation(region.equations, [&](const Equation& inner) {
        std::for_each(inner.results.begin(), inner.results.end(), make_whole);
        for (const Region& of : inner.regions) std::for_each(of.params.begin(), of.params.end(), make_whole);
      });
    }
    for (const Value result : equation.results) {
      if (program.type(result).varying == varying) make_whole(result);
    }
  });
}

bool examples_vary(const Program& program) {
  bool has_batch = false;
  for (const Input& input : program.inputs) {
    if (input.group != Group::batch) continue;
    if (!program.type(input.value).varying.empty()) return true;
    has_batch = true;
  }
  return !has_batch;
}

RowFacts find_row_facts(const Program& program, const Facts& facts) {
  std::set<std::pair<std::int64_t, std::uint32_t>> tried;
  RowFacts best;
  best.kinds.assign(program.types.size(), RowKind::whole);
  best.all_rows_equal.assign(program.types.size(), false);
  double most = 0;
  const bool vary = examples_vary(program);
  const auto attempt = [&](Value value) {
    const Type& type = program.type(value);
    if (type.shape.empty() || type.shape[0] < 1) return;
    // One example of no axes, as a token of a text that goes on, is nothing to cut.
    if (type.varying.empty() && (vary || type.shape[0] == 1)) return;
    if (!tried.emplace(type.shape[0], type.varying.bits()).second) return;
    Trial trial(program, facts, type.shape[0], type.varying);
    trial.run();
    if (trial.work <= most) return;
    most = trial.work;
    best = trial.take();
  };
  for (const Input& input : program.inputs) {
    if (input.group == Group::batch) attempt(input.value);
  }
  for (const Equation& equation : program.equations) {
    if (!equation.op.is_loop()) continue;
    const LoopRule loop = equation.op.loop();
    const std::vector<Value>& params = equation.regions.front().params;
    for (std::size_t i = static_cast<std::size_t>(loop.consts + loop.carries); i < params.size(); ++i) {
      attempt(params[i]);
    }
  }
  return best;
}

}  // namespace pmaptrain
