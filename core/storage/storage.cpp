#include "core/storage/storage.h"

#include <algorithm>
#include <set>
#include <span>

#include "core/graph/bucket.h"

namespace pmaptrain {
namespace {

class Finder {
 public:
  Finder(const Program& program, bool private_copies)
      : program_(program), private_copies_(private_copies), by_(program.types.size()) {
    storage_.homes.resize(program.types.size());
  }

  StorageFacts run() {
    for (const Input& input : program_.inputs) give_own(input.value);
    visit(program_.equations);
    std::vector<Replacement> updates;
    for (const Input& input : program_.inputs) {
      if (input.next) updates.push_back({*input.next, input.value});
    }
    storage_.updates = decided(std::move(updates), program_.equations);
    for (const Output& output : program_.outputs) storage_.copied_first.push_back(is_replaced(output.value));
    return std::move(storage_);
  }

 private:
  Home& at(Value value) { return storage_.homes[static_cast<std::size_t>(value.id)]; }
  const Type& type(Value value) const { return program_.type(value); }
  void give_own(Value value) { at(value) = {value, 0}; }

  void visit(std::span<const Equation> equations) {
    for (const Equation& equation : equations) visit(equation);
  }

  void visit(const Equation& equation) {
    for (const Value result : equation.results) {
      give_own(result);
      by_[static_cast<std::size_t>(result.id)] = &equation;
    }
    if (equation.op.is_loop()) return visit_loop(equation);
    const OpRules& rules = equation.op.rules();
    if (rules.view) at(equation.results.front()) = at(equation.operands.front());
    if (rules.unpacks) place_in_bucket(equation);
  }

  // The arrays of a bucket with one slice are ranges of it. If it has several slices, those of an array do not lie one
  // after another, so the array is copied.
  void place_in_bucket(const Equation& unpack) {
    const Value bucket = unpack.operands.front();
    if (private_copies_ || !type(bucket).varying.empty()) return;
    const std::vector<std::int64_t> offsets = offsets_in_bucket(types_of(program_, unpack.results));
    for (std::size_t i = 0; i < unpack.results.size(); ++i) {
      at(unpack.results[i]) = {at(bucket).root, at(bucket).begin + offsets[i]};
    }
  }

  // A constant of a loop is its operand. A carry has the memory of the loop's result.
  void visit_loop(const Equation& equation) {
    const LoopRule rule = equation.op.loop();
    const Region& region = equation.regions.front();
    const auto consts = static_cast<std::size_t>(rule.consts), carries = static_cast<std::size_t>(rule.carries);
    for (std::size_t i = 0; i < region.params.size(); ++i) {
      if (i < consts) {
        at(region.params[i]) = at(equation.operands[i]);
      } else if (i < consts + carries) {
        at(region.params[i]) = at(equation.results[i - consts]);
      } else {
        give_own(region.params[i]);
      }
    }
    visit(region.equations);
    std::vector<Replacement> yields;
    for (std::size_t i = 0; i < carries; ++i) yields.push_back({region.results[i], region.params[consts + i]});
    storage_.yields.emplace(&equation, decided(std::move(yields), region.equations));
  }

  // Decides how values are replaced by values that `equations` compute.
  std::vector<Replacement> decided(std::vector<Replacement> all, std::span<const Equation> equations) {
    std::set<Value> replaced, kept;  // roots: of what is replaced, and of the new values
    for (const Replacement& each : all) {
      const Value from = at(each.from).root, to = at(each.to).root;
      if (from != to || at(each.from).begin != 0) replaced.insert(to);
      kept.insert(from);
    }
    for (Replacement& each : all) {
      const Home from = at(each.from), to = at(each.to);
      if (from.root == to.root && from.begin == 0 && numel(type(each.from)) == numel(type(each.to))) {
        each.how = Replacement::How::none;
      } else if (replaced.contains(from.root)) {
        each.how = Replacement::How::copy_twice;
      } else if (!kept.contains(to.root) && may_overwrite(each, equations)) {
        each.how = Replacement::How::overwrite;
        taken_.insert(from.root);
      }
    }
    return all;
  }

  bool may_overwrite(Replacement& each, std::span<const Equation> equations) {
    const Value from = at(each.from).root, to = at(each.to).root;
    each.by = by_[static_cast<std::size_t>(from.id)];
    // A constant is computed once, when the program is loaded. What an outer region computes outlives the iteration.
    const bool here = each.by != nullptr && !each.by->operands.empty() && !equations.empty() &&
                      each.by >= &equations.front() && each.by <= &equations.back();
    if (!here || at(each.from).begin != 0 || taken_.contains(from)) return false;
    const bool alike = type(from).dtype == type(to).dtype && type(from).varying == type(to).varying &&
                       numel(type(from)) == numel(type(to));
    if (!alike) return false;
    const OpRules& rules = each.by->op.rules();
    const std::vector<Value>& operands = each.by->operands;
    // Of the old value: the same element for the same element. What an op in place reads besides operand 0 has another
    // order.
    each.by_element = rules.elementwise || rules.in_place;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const bool same =
          (rules.elementwise || i == 0) && at(operands[i]).begin == 0 && numel(type(operands[i])) == numel(type(from));
      if (at(operands[i]).root == to && !same) each.by_element = false;
    }
    return true;
  }

  bool is_replaced(Value output) {
    const Value root = at(output).root;
    return std::any_of(storage_.updates.begin(), storage_.updates.end(), [&](const Replacement& update) {
      return update.to == root && update.how != Replacement::How::none;
    });
  }

  const Program& program_;
  const bool private_copies_;
  StorageFacts storage_;
  std::vector<const Equation*> by_;  // by value: the equation that computes it
  std::set<Value> taken_;            // roots that are computed in the memory of another value
};

}  // namespace

StorageFacts storage_of(const Program& program, bool private_copies) { return Finder(program, private_copies).run(); }

}  // namespace pmaptrain
