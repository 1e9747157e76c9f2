#include "core/passes/join_columns.h"

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/graph/check.h"
#include "core/ops/fused_columns/fused_columns.h"
#include "core/passes/chains.h"
#include "core/passes/order.h"
#include "core/passes/slice.h"
#include "core/passes/uses.h"

namespace pmaptrain {
namespace {

class ColumnJoiner {
 public:
  ColumnJoiner(Program& program, std::vector<Equation>& equations, std::span<const Value> yielded,
               Definitions& definitions)
      : program_(program), equations_(equations), yielded_(yielded), definitions_(definitions) {
    definitions_.add(equations_);
  }

  bool run() {
    std::vector<std::size_t> joined;
    for (std::size_t i = 0; i < equations_.size(); ++i) {
      if (is_sum(i) && join(i)) joined.push_back(i);
    }
    if (joined.empty()) return false;
    remove_unread(joined);
    definitions_.remove(equations_);
    std::vector<Equation> nodes;
    std::vector<std::size_t> place;
    for (std::size_t i = 0; i < equations_.size(); ++i) {
      if (equations_[i].results.empty()) continue;
      nodes.push_back(std::move(equations_[i]));
      place.push_back(i);
    }
    definitions_.add(nodes);
    equations_ = topologically_sorted(std::move(nodes), place, definitions_);
    return true;
  }

 private:
  const Type& type(Value value) const { return program_.type(value); }
  bool is_sum(std::size_t i) const {
    return equations_[i].op.as<ops::FusedColumns>() != nullptr && !equations_[i].results.empty();
  }

  // The matrix of a fused_columns equation.
  ops::Matrix matrix_of(std::size_t i) const {
    for (const Equation& inner : equations_[i].regions[0].equations) {
      const auto* const sum = inner.op.as<ops::ReduceSum>();
      if (sum != nullptr) return *ops::matrix_of(*sum, type(inner.operands[0]).shape);
    }
    return {};
  }

  // Whether both read the elements of one array.
  bool read_one_matrix(std::size_t a, std::size_t b) const {
    const ops::Matrix matrix = matrix_of(a);
    const std::vector<Value>& others = equations_[b].operands;
    return matrix == matrix_of(b) &&
           std::any_of(equations_[a].operands.begin(), equations_[a].operands.end(), [&](Value value) {
             return numel(type(value)) == matrix.elements() &&
                    std::find(others.begin(), others.end(), value) != others.end();
           });
  }

  // Joins equation `last` with another one whose results it reads, itself or through chains.
  bool join(std::size_t last) {
    const std::int64_t columns = matrix_of(last).columns;
    std::set<std::size_t> chains;
    for (std::vector<std::size_t> open{last}; !open.empty();) {
      const Equation& reader = equations_[open.back()];
      open.pop_back();
      for (const Value operand : reader.operands) {
        const std::size_t* const found = definitions_.find(operand);
        if (found == nullptr || *found == last) continue;
        if (is_sum(*found) && read_one_matrix(*found, last)) return join(*found, chains, last);
        if (is_of_columns(program_, equations_[*found], columns) && chains.insert(*found).second)
          open.push_back(*found);
      }
    }
    return false;
  }

  bool join(std::size_t first, const std::set<std::size_t>& chains, std::size_t last) {
    std::vector<std::size_t> members{first};
    for (const std::size_t chain : chains) {
      if (needs(chain, {first})) members.push_back(chain);
    }
    members.push_back(last);
    // Nothing outside may come between.
    for (const std::size_t member : members) {
      for (const Value operand : equations_[member].operands) {
        const std::size_t* const found = definitions_.find(operand);
        if (found != nullptr && std::find(members.begin(), members.end(), *found) == members.end() &&
            needs(*found, members)) {
          return false;
        }
      }
    }
    Equation made = joined(members);
    const Region& region = made.regions[0];
    const std::vector<ops::ColumnSum> sums = ops::column_sums(region, program_.types);
    if (sums.empty() || sums.size() > ops::most_column_sums) return false;
    for (const std::size_t member : members) equations_[member].results.clear();
    for (const std::size_t member : members) equations_[member].operands.clear();
    for (const Value result : made.results) definitions_.set(result, last);
    equations_[last] = std::move(made);
    return true;
  }

  // Whether an equation is one of these, or needs one.
  bool needs(std::size_t i, const std::vector<std::size_t>& members) const {
    std::unordered_set<std::size_t> seen{i};
    for (std::vector<std::size_t> open{i}; !open.empty();) {
      const std::size_t at = open.back();
      open.pop_back();
      if (std::find(members.begin(), members.end(), at) != members.end()) return true;
      for (const Value operand : equations_[at].operands) {
        const std::size_t* const found = definitions_.find(operand);
        if (found != nullptr && seen.insert(*found).second) open.push_back(*found);
      }
    }
    return false;
  }

  // One equation with the regions of all, which come in an order in which each needs those before it alone.
  Equation joined(const std::vector<std::size_t>& members) {
    Equation made{ops::FusedColumns{}, {}, {}, equations_[members.front()].origin, {}};
    Region body;
    Outside inside;  // by value of the equations
    for (const std::size_t member : members) {
      const Equation& equation = equations_[member];
      const bool is_chain = equation.op.as<ops::FusedColumns>() == nullptr;
      const Region region = is_chain ? region_of(equation) : equation.regions[0];
      Outside copies;  // by value of the region
      for (std::size_t p = 0; p < region.params.size(); ++p) {
        const Value param = region.params[p];
        const Value operand = is_chain ? outside_of(equation, region).at(param.id) : equation.operands[p];
        const auto [known, is_new] = inside.try_emplace(operand.id);
        if (is_new) {
          known->second = new_value(program_, param);
          made.operands.push_back(operand);
          body.params.push_back(known->second);
        }
        copies[param.id] = known->second;
      }
      for (Equation inner : region.equations) {
        for (Value& operand : inner.operands) operand = copies.at(operand.id);
        const Value result = inner.results[0];
        inner.results = {copies[result.id] = new_value(program_, result)};
        body.equations.push_back(std::move(inner));
      }
      for (std::size_t r = 0; r < region.results.size(); ++r) {
        const Value result = inside[equation.results[r].id] = copies.at(region.results[r].id);
        made.results.push_back(equation.results[r]);
        body.results.push_back(result);
      }
    }
    made.regions.push_back(std::move(body));
    return made;
  }

  // What only the joined equations have read is not yielded any more.
  void remove_unread(const std::vector<std::size_t>& joined) {
    std::unordered_set<std::int32_t> read;
    for (const Value value : yielded_) read.insert(value.id);
    for (const Equation& equation : equations_) {
      for (const Value operand : equation.operands) read.insert(operand.id);
    }
    for (const std::size_t i : joined) {
      Equation& equation = equations_[i];
      for (std::size_t r = equation.results.size(); r-- > 0 && equation.results.size() > 1;) {
        if (read.contains(equation.results[r].id)) continue;
        equation.results.erase(equation.results.begin() + static_cast<std::ptrdiff_t>(r));
        std::vector<Value>& yields = equation.regions[0].results;
        yields.erase(yields.begin() + static_cast<std::ptrdiff_t>(r));
      }
    }
  }

  Program& program_;
  std::vector<Equation>& equations_;
  const std::span<const Value> yielded_;
  Definitions& definitions_;
};

bool join_columns(Program& program, std::vector<Equation>& equations, std::span<const Value> yielded,
                  Definitions& definitions) {
  bool found = false;
  for (Equation& equation : equations) {
    if (!equation.op.is_loop()) continue;
    Region& body = equation.regions[0];
    found |= join_columns(program, body.equations, body.results, definitions);
  }
  return ColumnJoiner(program, equations, yielded, definitions).run() || found;
}

}  // namespace

Program join_columns(Program program) {
  const std::vector<Value> yielded = yielded_by(program);
  Definitions definitions;
  if (join_columns(program, program.equations, yielded, definitions)) check(program, "join_columns");
  return program;
}

}  // namespace pmaptrain
