#include "core/exports/recurrences.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "core/ops/list.h"

namespace pmaptrain::exports {
namespace {

// The equation that gives a value; null if that is not of this op.
template <class Op>
const Equation* made_by(const Program& program, Value value) {
  for (const Equation& equation : program.equations) {
    if (equation.results.front() == value) return equation.op.as<Op>() != nullptr ? &equation : nullptr;
  }
  return nullptr;
}

template <class Op>
const Equation& maker(const Program& program, Value value) {
  if (const Equation* const found = made_by<Op>(program, value)) return *found;
  throw std::logic_error("the inputs of a recurrence are of no " + std::string(Op::name));
}

Value without_broadcasts(const Program& program, Value value) {
  while (const Equation* const made = made_by<ops::Broadcast>(program, value)) value = made->operands.front();
  return value;
}

}  // namespace

// The state is held at zero in padding by select(lengths > position, products, held): core/layers/recurrent.h.
std::optional<RecurrenceInputs> recurrence_inputs(const Program& program, const Equation& equation) {
  if (equation.op.as<ops::Lstm>() == nullptr && equation.op.as<ops::Gru>() == nullptr) return std::nullopt;
  Value products = equation.operands.front();
  std::optional<Value> lengths;
  if (const Equation* const held = made_by<ops::Select>(program, products)) {
    const Equation& inside = maker<ops::Gt>(program, without_broadcasts(program, held->operands[0]));
    lengths = without_broadcasts(program, inside.operands[0]);
    products = held->operands[1];
  }
  const std::vector<Value>& of = maker<ops::Matmul>(program, products).operands;
  return RecurrenceInputs{of[0], of[1], of[2], lengths};
}

std::vector<bool> parts_of_recurrences(const Program& program) {
  std::vector<bool> is_used(program.types.size()), is_needed(program.types.size());
  const auto mark = [](std::vector<bool>& values, Value value) { values[static_cast<std::size_t>(value.id)] = true; };
  const auto any = [](const std::vector<bool>& values, const Equation& equation) {
    return std::any_of(equation.results.begin(), equation.results.end(),
                       [&](Value result) { return values[static_cast<std::size_t>(result.id)]; });
  };
  for (const Output& output : program.outputs) mark(is_needed, output.value);
  std::vector<bool> parts(program.equations.size());
  for (std::size_t i = program.equations.size(); i-- > 0;) {
    const Equation& equation = program.equations[i];
    for (const Value operand : equation.operands) mark(is_used, operand);
    parts[i] = any(is_used, equation) && !any(is_needed, equation);
    if (parts[i]) continue;
    const std::optional<RecurrenceInputs> inputs = recurrence_inputs(program, equation);
    for (std::size_t o = inputs ? 1 : 0; o < equation.operands.size(); ++o) mark(is_needed, equation.operands[o]);
    if (!inputs) continue;
    for (const Value input : {inputs->x, inputs->kernel, inputs->bias}) mark(is_needed, input);
    if (inputs->lengths) mark(is_needed, *inputs->lengths);
  }
  return parts;
}

}  // namespace pmaptrain::exports
