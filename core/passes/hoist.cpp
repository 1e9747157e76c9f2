#include "core/passes/hoist.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "core/graph/passes.h"
#include "core/ops/broadcast/broadcast.h"
#include "core/ops/loop/loop.h"

namespace pmaptrain {
namespace {

constexpr std::int64_t small_elements = 4096;

// Processes one loop. Equations that move are appended to `before`.
class LoopHoister {
 public:
  LoopHoister(Program& program, Equation& loop, std::vector<Equation>& before)
      : program_(program), loop_(loop), before_(before) {}

  // Returns whether an equation moved.
  bool run() {
    Region& region = loop_.regions.front();
    const auto consts = static_cast<std::size_t>(loop_.op.loop().consts);
    for (std::size_t i = 0; i < consts; ++i) outside_[region.params[i].id] = loop_.operands[i];
    count_reads(region);
    for (Equation& equation : region.equations) {
      const bool invariant = std::all_of(equation.operands.begin(), equation.operands.end(),
                                         [&](Value operand) { return is_invariant(operand); });
      if (invariant && is_free_inside(equation)) {
        free_[equation.results.front().id] = staying_.size();
      } else if (invariant && may_move(equation)) {
        move(std::move(equation));
        continue;
      }
      staying_.push_back(std::move(equation));
    }
    region.equations = std::move(staying_);
    add_consts(region, consts);
    return !params_.empty();
  }

 private:
  static bool is_free_inside(const Equation& equation) {
    return equation.operands.empty() || equation.is_view() || equation.op.as<ops::Broadcast>() != nullptr;
  }

  bool is_invariant(Value value) const { return outside_.contains(value.id) || free_.contains(value.id); }

  // The value in memory from which `value` is read: for a view or a broadcast, the root of its operand.
  Value root(Value value) const {
    const auto found = roots_.find(value.id);
    return found == roots_.end() ? value : found->second;
  }

  void count_reads(const Region& region) {
    for (const Equation& equation : region.equations) {
      if (!equation.operands.empty() && is_free_inside(equation)) {
        roots_[equation.results.front().id] = root(equation.operands.front());
      } else {
        for (Value operand : equation.operands) ++reads_[root(operand).id];
      }
    }
    for (Value result : region.results) ++reads_[root(result).id];
  }

  // Whether the equation fulfils one of the two conditions of hoist().
  bool may_move(const Equation& equation) const {
    std::map<std::int32_t, int> own;
    for (Value operand : equation.operands) ++own[root(operand).id];
    std::int64_t elements_read = 0, elements_made = 0;
    std::size_t bytes_freed = 0, bytes_made = 0;
    for (const auto& [id, count] : own) {
      const Type& type = program_.type(Value{id});
      elements_read += numel(type);
      if (!free_.contains(id) && reads_.at(id) == count) bytes_freed += bytes(type);
    }
    for (Value result : equation.results) {
      elements_made += numel(program_.type(result));
      bytes_made += bytes(program_.type(result));
    }
    return bytes_made <= bytes_freed || (elements_made <= small_elements && elements_made <= elements_read);
  }

  // Moves an equation before the loop, where its results are new values. The old results become parameters of the
  // region.
  void move(Equation equation) {
    for (Value& operand : equation.operands) {
      --reads_[root(operand).id];
      operand = bring_outside(operand);
    }
    for (Value& result : equation.results) {
      params_.push_back(result);
      operands_.push_back(new_value_like(result));
      outside_[result.id] = operands_.back();
      result = operands_.back();
    }
    before_.push_back(std::move(equation));
  }

  // The same value before the loop. Copies the free equation that gives it, if necessary.
  Value bring_outside(Value value) {
    const auto found = outside_.find(value.id);
    if (found != outside_.end()) return found->second;
    Equation copy = staying_[free_.at(value.id)];
    for (Value& operand : copy.operands) operand = bring_outside(operand);
    copy.results = {new_value_like(value)};
    outside_[value.id] = copy.results.front();
    before_.push_back(std::move(copy));
    return outside_.at(value.id);
  }

  Value new_value_like(Value value) {
    program_.types.push_back(Type(program_.type(value)));
    return Value{static_cast<std::int32_t>(program_.types.size() - 1)};
  }

  void add_consts(Region& region, std::size_t consts) {
    const auto at = static_cast<std::ptrdiff_t>(consts);
    region.params.insert(region.params.begin() + at, params_.begin(), params_.end());
    loop_.operands.insert(loop_.operands.begin() + at, operands_.begin(), operands_.end());
    ops::Loop op = *loop_.op.as<ops::Loop>();
    op.consts += static_cast<std::int64_t>(params_.size());
    loop_.op = op;
  }

  Program& program_;
  Equation& loop_;
  std::vector<Equation>& before_;
  std::vector<Equation> staying_;
  std::unordered_map<std::int32_t, Value> outside_;     // by value of the region: the same value before the loop
  std::unordered_map<std::int32_t, std::size_t> free_;  // by free invariant result: its equation in staying_
  std::unordered_map<std::int32_t, Value> roots_;       // by result of a view or broadcast: see root()
  std::unordered_map<std::int32_t, int> reads_;         // by root: uses by equations and results of the region
  std::vector<Value> params_, operands_;                // the new consts, in the region and before the loop
};

// Processes inner loops first, because an equation that leaves one loop may then leave the loop around it. Returns
// whether an equation moved.
bool hoist_from(Program& program, std::vector<Equation>& equations) {
  bool moved = false;
  std::vector<Equation> all;
  all.reserve(equations.size());
  for (Equation& equation : equations) {
    for (Region& region : equation.regions) moved |= hoist_from(program, region.equations);
    if (equation.op.is_loop()) moved |= LoopHoister(program, equation, all).run();
    all.push_back(std::move(equation));
  }
  equations = std::move(all);
  return moved;
}

// Removes consts that the region does not read. Returns whether there were any.
bool remove_unread_consts(Equation& loop) {
  Region& region = loop.regions.front();
  std::unordered_set<std::int32_t> read;
  for (const Equation& equation : region.equations) {
    for (Value operand : equation.operands) read.insert(operand.id);
  }
  for (Value result : region.results) read.insert(result.id);
  ops::Loop op = *loop.op.as<ops::Loop>();
  const std::int64_t before = op.consts;
  for (auto i = static_cast<std::ptrdiff_t>(before); i-- > 0;) {
    if (read.contains(region.params[static_cast<std::size_t>(i)].id)) continue;
    region.params.erase(region.params.begin() + i);
    loop.operands.erase(loop.operands.begin() + i);
    --op.consts;
  }
  loop.op = op;
  return op.consts != before;
}

bool remove_unread_consts(std::vector<Equation>& equations) {
  bool removed = false;
  for (Equation& equation : equations) {
    for (Region& region : equation.regions) removed |= remove_unread_consts(region.equations);
    if (equation.op.is_loop()) removed |= remove_unread_consts(equation);
  }
  return removed;
}

}  // namespace

Program hoist(Program program) {
  const bool moved = hoist_from(program, program.equations);
  if (moved) program = simplify(std::move(program));
  const bool removed = remove_unread_consts(program.equations);
  return moved || removed ? simplify(std::move(program)) : std::move(program);
}

}  // namespace pmaptrain
