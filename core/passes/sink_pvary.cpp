#include "core/passes/sink_pvary.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/graph/passes.h"
#include "core/ops/broadcast/broadcast.h"
#include "core/ops/collective/collective.h"
#include "core/passes/uses.h"

namespace pmaptrain {
namespace {

// Processes one list of equations, of the program or of a region.
class Sinker {
 public:
  Sinker(Program& program, std::vector<Equation>& equations, std::span<const Value> yielded)
      : program_(program), equations_(equations), yielded_(yielded) {}

  // Returns whether an equation moved.
  bool run() {
    find_least();
    const std::vector<bool> moves = find_moves();
    if (std::find(moves.begin(), moves.end(), true) == moves.end()) return false;
    std::vector<Equation> before = std::move(equations_);
    equations_.clear();
    for (std::size_t i = 0; i < before.size(); ++i) {
      Equation& equation = before[i];
      if (is_pvary(equation)) origins_[equation.results.front().id] = origin(equation.operands.front());
      if (moves[i]) {
        move(std::move(equation));
      } else {
        equations_.push_back(std::move(equation));
      }
    }
    return true;
  }

 private:
  static bool is_pvary(const Equation& equation) { return equation.op.as<ops::Pvary>() != nullptr; }
  AxisSet varying(Value value) const { return program_.type(value).varying; }

  // A broadcast along dimensions of size 1 counts as a view.
  bool is_view(const Equation& equation) const {
    if (equation.op.as<ops::Broadcast>() == nullptr) return equation.is_view();
    return numel(program_.type(equation.operands.front())) == numel(program_.type(equation.results.front()));
  }

  // Whether the equation could run on operands with a smaller set of axes.
  bool is_movable(const Equation& equation) const {
    const bool repeats = equation.op.as<ops::Broadcast>() != nullptr && !is_view(equation);
    const bool waits = equation.op.rules().view && equation.operands.size() > 1;
    return equation.op.local() && equation.regions.empty() && !equation.operands.empty() && !repeats && !waits;
  }

  // The axes over which the value would vary without the `pvary`s before it.
  AxisSet least(Value value) const {
    const auto found = least_.find(value.id);
    return found == least_.end() ? varying(value) : found->second;
  }

  void find_least() {
    for (const Equation& equation : equations_) {
      if (!is_pvary(equation) && !is_movable(equation)) continue;
      AxisSet all;
      for (Value operand : equation.operands) all = all | least(operand);
      for (Value result : equation.results) least_[result.id] = all;
    }
  }

  // By equation: whether it moves. An equation that fusion would put into a chain moves only if its result is stored:
  // if an equation that moves, or that is not elementwise, reads it.
  std::vector<bool> find_moves() const {
    std::vector<bool> moves(equations_.size());
    std::unordered_set<std::int32_t> stored;
    for (Value value : yielded_) stored.insert(value.id);
    for (std::size_t i = equations_.size(); i-- > 0;) {
      const Equation& equation = equations_[i];
      const Value first = equation.results.front();
      const bool view = is_view(equation), in_chain = view || equation.op.rules().elementwise;
      const bool is_stored = std::any_of(equation.results.begin(), equation.results.end(),
                                         [&](Value result) { return stored.contains(result.id); });
      const bool helps = is_stored || !in_chain || (!view && numel(program_.type(first)) == 1);
      moves[i] = helps && is_movable(equation) && least(first) != varying(first);
      if (moves[i] || !in_chain || (view && is_stored)) {
        for (Value operand : equation.operands) stored.insert(operand.id);
      }
    }
    return moves;
  }

  // The value before its `pvary`; the value itself if a `pvary` does not give it.
  Value origin(Value value) const {
    const auto found = origins_.find(value.id);
    return found == origins_.end() ? value : found->second;
  }

  void move(Equation equation) {
    const std::vector<Value> results = equation.results;
    const AxisSet axes = least(results.front()), missing = varying(results.front()) - axes;
    const std::shared_ptr<const Origin> from = equation.origin;
    for (Value& operand : equation.operands) {
      operand = origin(operand);
      const AxisSet lacks = axes - varying(operand);
      if (lacks.empty()) continue;
      const Value varied = new_value(operand, axes);
      equations_.push_back({ops::Pvary{lacks}, {operand}, {varied}, from, {}});
      operand = varied;
    }
    for (Value& result : equation.results) {
      const Value smaller = new_value(result, axes);
      origins_[result.id] = smaller;
      result = smaller;
    }
    const std::vector<Value> smaller = equation.results;
    equations_.push_back(std::move(equation));
    for (std::size_t i = 0; i < results.size(); ++i) {
      equations_.push_back({ops::Pvary{missing}, {smaller[i]}, {results[i]}, from, {}});
    }
  }

  Value new_value(Value like, AxisSet axes) {
    Type type = program_.type(like);
    type.varying = axes;
    program_.types.push_back(std::move(type));
    return Value{static_cast<std::int32_t>(program_.types.size() - 1)};
  }

  Program& program_;
  std::vector<Equation>& equations_;
  const std::span<const Value> yielded_;
  std::unordered_map<std::int32_t, AxisSet> least_;  // by value: see least()
  std::unordered_map<std::int32_t, Value> origins_;  // by value: see origin()
};

// Returns whether an equation moved.
bool sink(Program& program, std::vector<Equation>& equations, std::span<const Value> yielded) {
  bool moved = false;
  for (Equation& equation : equations) {
    if (!equation.op.is_loop()) continue;
    for (Region& region : equation.regions) moved |= sink(program, region.equations, region.results);
  }
  return Sinker(program, equations, yielded).run() || moved;
}

}  // namespace

Program sink_pvary(Program program) {
  const std::vector<Value> yielded = yielded_by(program);
  const bool moved = sink(program, program.equations, yielded);
  return moved ? simplify(std::move(program)) : std::move(program);
}

}  // namespace pmaptrain
