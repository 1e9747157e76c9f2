#include "core/graph/differentiate.h"

#include <algorithm>
#include <cassert>
#include <memory>
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

}  // namespace

std::vector<Value> differentiate(Builder& b, Value of, Value seed, std::span<const Value> wrt) {
  const std::vector<bool> active = dependants(b.program(), b.equations(), wrt);
  const auto is_active = [&](Value value) { return active[static_cast<std::size_t>(value.id)]; };
  Cotangents_ cotangents(b);
  if (is_active(of)) cotangents.add(of, seed);

  for (std::size_t i = b.equations().size(); i-- > 0;) {
    const Equation equation = b.equations()[i];  // a copy: the rules append to the list that is walked
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
      needed[k] = is_active(equation.operands[k]) && is_floating(b.program().type(equation.operands[k]).dtype);
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
