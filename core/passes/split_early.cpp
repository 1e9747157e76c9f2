#include "core/passes/split_early.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/graph/check.h"
#include "core/ops/fused/fused.h"
#include "core/ops/fused_rows/fused_rows.h"
#include "core/passes/fuse_rows.h"
#include "core/passes/slice.h"

namespace pmaptrain {
namespace {

using Values = std::unordered_set<std::int32_t>;

// The equations of one region, or of the program.
class EarlySplitter {
 public:
  EarlySplitter(Program& program, std::vector<Equation>& equations) : program_(program), equations_(equations) {}

  bool run() {
    std::vector<Equation> all;
    bool found = false;
    Values defined;
    for (const Equation& equation : equations_) {
      for (const Value result : equation.results) defined.insert(result.id);
    }
    const auto is_early = [&](Value value) { return early_.contains(value.id) || !defined.contains(value.id); };
    for (Equation& equation : equations_) {
      const OpRules& rules = equation.op.rules();
      const bool all_early = (rules.elementwise || rules.view || equation.op.as<ops::Broadcast>() != nullptr) &&
                             std::all_of(equation.operands.begin(), equation.operands.end(), is_early);
      if (all_early) {
        for (const Value result : equation.results) early_.insert(result.id);
      } else if (const std::optional<Rows> rows = reduced_rows(equation)) {
        row_sums_[equation.results[0].id] = *rows;
      } else if (equation.is_view() && row_sums_.contains(equation.operands[0].id)) {
        row_sums_[equation.results[0].id] = row_sums_.at(equation.operands[0].id);
      } else if (equation.op.as<ops::Fused>() != nullptr && reads_sums(equation)) {
        found |= split(equation, is_early, all);
      }
      all.push_back(std::move(equation));
    }
    equations_ = std::move(all);
    return found;
  }

 private:
  const Type& type(Value value) const { return program_.type(value); }

  // The rows that an equation reduces, of a batch of one example too: its positions are rows of the loss.
  std::optional<Rows> reduced_rows(const Equation& equation) const {
    const std::optional<Rows> rows = rows_to_fuse(program_, equation);
    if (rows || equation.operands.size() != 1) return rows;
    const std::int64_t length = numel(type(equation.operands[0]));
    const bool is_one_example = type(equation.results[0]).shape == Shape{1} && length > 1 &&
                                ops::reduces_rows(equation.op, type(equation.operands[0]).shape, length);
    return is_one_example ? std::optional(Rows{1, length}) : std::nullopt;
  }

  // Whether a chain reads sums of rows, and has an element for each row or for each element of the rows.
  bool reads_sums(const Equation& chain) const {
    const std::int64_t elements = numel(type(chain.results[0]));
    return std::any_of(chain.operands.begin(), chain.operands.end(), [&](Value value) {
      const auto found = row_sums_.find(value.id);
      return found != row_sums_.end() &&
             (elements == found->second.rows || elements == found->second.rows * found->second.length);
    });
  }

  // Appends the early part of a chain to `before`, and leaves the rest. Does nothing if either would be empty.
  template <class IsEarly>
  bool split(Equation& chain, const IsEarly& is_early, std::vector<Equation>& before) {
    const Region& region = chain.regions[0];
    const std::int64_t elements = numel(type(region.results[0]));
    Values constant, early;  // values of the region: computed from nothing, and from early operands
    for (std::size_t i = 0; i < region.params.size(); ++i) {
      if (is_early(chain.operands[i])) early.insert(region.params[i].id);
    }
    for (const Equation& inner : region.equations) {
      const auto all_in = [&](auto&&... sets) {
        return std::all_of(inner.operands.begin(), inner.operands.end(),
                           [&](Value operand) { return (sets.contains(operand.id) || ...); });
      };
      if (all_in(constant)) {
        constant.insert(inner.results[0].id);
      } else if (all_in(constant, early)) {
        early.insert(inner.results[0].id);
      }
    }
    // What the early part yields: to the rest, and to other equations.
    std::vector<Value> yielded;
    bool has_rest = false;
    const auto yield = [&](Value value) {
      const bool is_param = std::find(region.params.begin(), region.params.end(), value) != region.params.end();
      if (is_param || !early.contains(value.id)) return;
      if (std::find(yielded.begin(), yielded.end(), value) == yielded.end()) yielded.push_back(value);
    };
    for (const Equation& inner : region.equations) {
      const Value result = inner.results[0];
      if (early.contains(result.id) || constant.contains(result.id)) continue;
      has_rest = true;
      for (const Value operand : inner.operands) yield(operand);
    }
    for (const Value result : region.results) yield(result);
    const bool are_full =
        std::all_of(yielded.begin(), yielded.end(), [&](Value value) { return numel(type(value)) == elements; });
    if (yielded.empty() || !has_rest || !are_full) return false;

    std::vector<Value> kept;
    for (const Value result : region.results) {
      if (!early.contains(result.id)) kept.push_back(result);
    }
    Outside outside = outside_of(chain, region);
    Equation first = part_of_chain(program_, chain, yielded, outside);
    for (std::size_t i = 0; i < yielded.size(); ++i) outside[yielded[i].id] = first.results[i];
    Equation rest = part_of_chain(program_, chain, kept, outside);
    if (kept.empty() || rest.operands.empty()) return false;
    for (const Value result : first.results) early_.insert(result.id);
    before.push_back(std::move(first));
    chain = std::move(rest);
    return true;
  }

  Program& program_;
  std::vector<Equation>& equations_;
  Values early_;                                     // elementwise functions of inputs
  std::unordered_map<std::int32_t, Rows> row_sums_;  // by result of a reduction of rows
};

bool split_early(Program& program, std::vector<Equation>& equations) {
  bool found = false;
  for (Equation& equation : equations) {
    if (equation.op.is_loop()) found |= split_early(program, equation.regions[0].equations);
  }
  return EarlySplitter(program, equations).run() || found;
}

}  // namespace

Program split_early(Program program) {
  if (split_early(program, program.equations)) check(program, "split_early");
  return program;
}

}  // namespace pmaptrain
