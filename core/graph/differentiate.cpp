#include "core/graph/differentiate.h"

#include <cassert>
#include <memory>
#include <unordered_map>
#include <unordered_set>

namespace pmaptrain {
namespace {

// Values that depend on one of `wrt` through floating values.
std::unordered_set<std::int32_t> dependants(const Program& program, const std::vector<Equation>& equations,
                                            std::span<const Value> wrt) {
  std::unordered_set<std::int32_t> active;
  for (Value value : wrt) active.insert(value.id);
  for (const Equation& equation : equations) {
    bool depends = false;
    for (Value operand : equation.operands) depends |= active.contains(operand.id);
    if (!depends) continue;
    for (Value result : equation.results) {
      if (is_floating(program.type(result).dtype)) active.insert(result.id);
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

}  // namespace

std::vector<Value> differentiate(Builder& b, Value of, Value seed, std::span<const Value> wrt) {
  // A copy: the rules append to the list that is walked.
  const std::vector<Equation> forward = b.equations();
  const std::unordered_set<std::int32_t> active = dependants(b.program(), forward, wrt);
  Cotangents_ cotangents(b);
  if (active.contains(of.id)) cotangents.add(of, seed);

  for (std::size_t i = forward.size(); i-- > 0;) {
    const Equation& equation = forward[i];
    std::vector<std::optional<Value>> of_results;
    bool reached = false;
    for (Value result : equation.results) {
      of_results.push_back(cotangents.of(result));
      reached |= of_results.back().has_value();
    }
    if (!reached) continue;
    const auto needed = std::make_unique<bool[]>(equation.operands.size());
    bool any = false;
    for (std::size_t k = 0; k < equation.operands.size(); ++k) {
      needed[k] = active.contains(equation.operands[k].id) && is_floating(b.type(equation.operands[k]).dtype);
      any |= needed[k];
    }
    if (!any) continue;
    if (equation.op.rules().derivative == nullptr) refuse(equation);
    const Builder::Scope scope(
        b, {equation.origin->scope.empty() ? "" : equation.origin->scope + ".grad", equation.origin->place});
    VjpContext context{b, equation.operands, equation.results, of_results, {needed.get(), equation.operands.size()}};
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
