#include "core/graph/differentiate.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <set>
#include <unordered_map>

namespace pmaptrain {
namespace {

// By value: whether it depends on one of `wrt` through floating values.
std::vector<bool> dependants(const Program& program, const std::vector<Equation>& equations,
                             std::span<const Value> wrt) {
  std::vector<bool> active(program.types.size());
  for (Value value : wrt) active[static_cast<std::size_t>(value.id)] = true;
  for (const Equation& equation : equations) {
    const bool depends = std::any_of(equation.operands.begin(), equation.operands.end(),
                                     [&](Value operand) { return active[static_cast<std::size_t>(operand.id)]; });
    if (!depends) continue;
    for (Value result : equation.results) {
      if (is_floating(program.type(result).dtype)) active[static_cast<std::size_t>(result.id)] = true;
    }
  }
  return active;
}

class Cotangents_ {
 public:
  explicit Cotangents_(Builder& b) : b_(b) {}

  void add(Value of, Value cotangent) {
    // Rule 3: the cotangent of a value has exactly that value's type, set included.
    assert(b_.type(of) == b_.type(cotangent));
    auto [entry, is_new] = by_value_.try_emplace(of.id, cotangent);
    if (!is_new) entry->second = b_.emit(b_.ops().add(), {entry->second, cotangent});
  }

  std::optional<Value> of(Value value) const {
    const auto entry = by_value_.find(value.id);
    return entry == by_value_.end() ? std::nullopt : std::optional(entry->second);
  }

 private:
  Builder& b_;
  std::unordered_map<std::int32_t, Value> by_value_;
};

[[noreturn]] void refuse(const Equation& equation) {
  const std::string name(equation.op.name());
  throw Error(ExitStatus::usage,
              Diagnostic{"program",
                         equation.origin->place,
                         name + " has no derivative: " + std::string(equation.op.rules().no_derivative),
                         "stop_gradient on its operand keeps the derivative from reaching it (rule 3)",
                         {}});
}

// Computes values again where the walk needs them (Builder::Rematerialise), and gathers them again (Builder::Regather).
// Of what is computed again, equations that compute each row of their results from the same row of the operands are
// repeated, and collectives of such rows, as layers have that devices divide. Sums over rows, and what devices make of
// these together, are kept, because they are small and their bits depend on all rows.
class Rematerialiser {
 public:
  explicit Rematerialiser(Builder& b) : b_(b), open_(b.rematerialised()), gathers_(b.regathered()) {}

  // To be called for the equations in reverse. Before the first of a scope's that cotangents reach, appends the scope's
  // equations again; they wait for `cotangent`, because they would else run beside the forward pass.
  void reach(std::size_t equation, Value cotangent) {
    if (const auto scope = entered(gathers_, equation)) {
      hold(scope->shards, cotangent);
      for (std::size_t i = scope->begin; i < scope->gathered; ++i) append_again(Equation(b_.equations()[i]));
      for (std::size_t i = scope->gathered; i < scope->end; ++i) repeat_of_gathered(Equation(b_.equations()[i]));
    }
    if (const auto scope = entered(open_, equation)) {
      hold(scope->inputs, cotangent);
      for (std::size_t i = scope->begin; i < scope->end; ++i) repeat(Equation(b_.equations()[i]));
    }
  }

  // The values that stand for `values` in the derivative of an equation.
  std::vector<Value> of(std::span<const Value> values) const {
    std::vector<Value> found(values.begin(), values.end());
    for (Value& value : found) {
      if (const auto again = again_.find(value.id); again != again_.end()) value = again->second;
    }
    return found;
  }

 private:
  // The scope that has this equation, taken from those that were not entered yet; none if there is none.
  template <class Scope>
  static std::optional<Scope> entered(std::vector<Scope>& scopes, std::size_t equation) {
    while (!scopes.empty() && equation < scopes.back().begin) scopes.pop_back();
    if (scopes.empty() || equation >= scopes.back().end) return std::nullopt;
    Scope scope = std::move(scopes.back());
    scopes.pop_back();
    return scope;
  }

  void hold(std::span<const Value> inputs, Value cotangent) {
    for (const Value input : inputs) {
      const Value now = of({&input, 1}).front();
      again_[input.id] = b_.emit(b_.ops().optimization_barrier(), {now, cotangent});
    }
  }

  // What is computed of gathered values alone, such as the cast of a kernel, is as large as they are.
  void repeat_of_gathered(const Equation& equation) {
    const bool is_local = equation.op.local() && equation.regions.empty();
    const bool all = std::all_of(equation.operands.begin(), equation.operands.end(),
                                 [&](Value operand) { return again_.contains(operand.id); });
    if (is_local && all && !equation.operands.empty()) append_again(equation);
  }

  void repeat(const Equation& equation) {
    const std::vector<Value> operands = of(equation.operands);
    if (operands == equation.operands || !equation.regions.empty()) return;
    if (!equation.op.local()) return append_again(equation);
    const RowRule rule =
        equation.op.rows(types_of(b_.program(), equation.operands), types_of(b_.program(), equation.results));
    if (rule.kind == RowRule::Kind::keeps) append_again(equation);
  }

  void append_again(const Equation& equation) {
    const Builder::Scope origin(
        b_, {equation.origin->scope.empty() ? "" : equation.origin->scope + ".again", equation.origin->place});
    const std::vector<Value> results = b_.emit_all(equation.op, of(equation.operands));
    for (std::size_t k = 0; k < results.size(); ++k) again_[equation.results[k].id] = results[k];
  }

  Builder& b_;
  // Scopes that no cotangent has reached, in order.
  std::vector<Builder::Rematerialised> open_;
  std::vector<Builder::Regathered> gathers_;
  std::unordered_map<std::int32_t, Value> again_;
};

}  // namespace

std::vector<Value> differentiate(Builder& b, Value of, Value seed, std::span<const Value> wrt) {
  const std::vector<bool> active = dependants(b.program(), b.equations(), wrt);
  const auto is_active = [&](Value value) { return active[static_cast<std::size_t>(value.id)]; };
  // The walk ends at the values by which derivatives are taken.
  const std::set<Value> leaves(wrt.begin(), wrt.end());
  const auto is_leaf = [&](Value value) { return leaves.contains(value); };
  Cotangents_ cotangents(b);
  Rematerialiser again(b);
  if (is_active(of)) cotangents.add(of, seed);

  for (std::size_t i = b.equations().size(); i-- > 0;) {
    const Equation equation = b.equations()[i];  // a copy: the rules append to the list that is walked
    std::vector<std::optional<Value>> of_results;
    std::optional<Value> reached;
    for (Value result : equation.results) {
      of_results.push_back(is_leaf(result) ? std::nullopt : cotangents.of(result));
      if (!reached) reached = of_results.back();
    }
    if (!reached) continue;
    const auto needed = std::make_unique<bool[]>(equation.operands.size());
    bool any = false;
    for (std::size_t k = 0; k < equation.operands.size(); ++k) {
      needed[k] = is_active(equation.operands[k]) && is_floating(b.program().type(equation.operands[k]).dtype);
      any |= needed[k];
    }
    if (!any) continue;
    if (equation.op.rules().derivative == nullptr) refuse(equation);
    again.reach(i, *reached);
    const std::vector<Value> operands = again.of(equation.operands), results = again.of(equation.results);
    const Builder::Scope scope(
        b, {equation.origin->scope.empty() ? "" : equation.origin->scope + ".grad", equation.origin->place});
    VjpContext context{b, operands, results, of_results, {needed.get(), operands.size()}};
    const Cotangents of_operands = equation.op.derivative(context);
    assert(of_operands.size() == equation.operands.size());
    for (std::size_t k = 0; k < of_operands.size(); ++k) {
      if (needed[k] && of_operands[k]) cotangents.add(equation.operands[k], *of_operands[k]);
    }
  }

  std::vector<Value> gradients;
  for (Value value : wrt) {
    if (const auto cotangent = cotangents.of(value)) {
      gradients.push_back(*cotangent);
    } else {
      const Type type = b.type(value);
      gradients.push_back(b.vary(b.constant(type.dtype, 0.0, type.shape), type.varying));
    }
  }
  return gradients;
}

}  // namespace pmaptrain
