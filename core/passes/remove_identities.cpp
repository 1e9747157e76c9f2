#include "core/passes/remove_identities.h"

#include <unordered_map>
#include <unordered_set>

#include "core/graph/passes.h"
#include "core/ops/list.h"

namespace pmaptrain {
namespace {

class Remover {
 public:
  explicit Remover(Program& program) : program_(program) {}

  void run() {
    remove(program_.equations);
    for (Output& output : program_.outputs) replace(output.value);
    for (Input& input : program_.inputs) {
      if (input.next) replace(*input.next);
    }
  }

 private:
  void replace(Value& value) const {
    const auto found = same_as_.find(value.id);
    if (found != same_as_.end()) value = found->second;
  }

  // Readers of a result that equals an operand then read the operand. This leaves the equation unused, and simplify()
  // removes it.
  void remove(std::vector<Equation>& equations) {
    for (Equation& equation : equations) {
      for (Value& operand : equation.operands) replace(operand);
      for (Region& region : equation.regions) {
        remove(region.equations);
        for (Value& result : region.results) replace(result);
      }
      note_ones(equation);
      if (equation.op.as<ops::Cast>() != nullptr &&
          program_.type(equation.operands[0]) == program_.type(equation.results[0])) {
        same_as_[equation.results[0].id] = equation.operands[0];
      }
      if (equation.op.as<ops::Mul>() == nullptr) continue;
      for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
        const Value x = equation.operands[i], factor = equation.operands[1 - i];
        if (!ones_.contains(factor.id) || program_.type(x) != program_.type(equation.results[0])) continue;
        same_as_[equation.results[0].id] = x;
        break;
      }
    }
  }

  void note_ones(const Equation& equation) {
    const bool is_one = ops::splat_of(equation.op) == 1;
    const bool passes_on = equation.op.as<ops::Pvary>() != nullptr || equation.op.as<ops::Broadcast>() != nullptr ||
                           equation.op.as<ops::Reshape>() != nullptr;
    if (is_one || (passes_on && ones_.contains(equation.operands[0].id))) ones_.insert(equation.results[0].id);
  }

  Program& program_;
  std::unordered_set<std::int32_t> ones_;            // values that are 1 in every element
  std::unordered_map<std::int32_t, Value> same_as_;  // by result: the operand that it equals
};

}  // namespace

Program remove_identities(Program program) {
  Remover(program).run();
  return simplify(std::move(program));
}

}  // namespace pmaptrain
