// The first step of the pass `fuse`: decides which elementwise equations form a chain.
#pragma once

#include <cstddef>
#include <vector>

#include "core/graph/program.h"
#include "core/passes/fuse.h"

namespace pmaptrain {

inline constexpr std::size_t no_chain = static_cast<std::size_t>(-1);

// Whether an equation costs nothing inside a chain: constants of one value, views, and broadcasts that repeat elements.
// Such an equation belongs to no chain. Instead, every chain that reads its result gets a copy of it.
bool is_free_in_chain(const Program& program, const Equation& equation);

// Maps each value to the index, in a list of equations, of the equation that defines it. One instance can serve the
// list of the program and those of all regions, because no equation reads values of another list.
class Definitions {
 public:
  void add(const std::vector<Equation>& equations);
  void remove(const std::vector<Equation>& equations);
  void set(Value value, std::size_t index);
  // Points to the index; null for a value that no added equation defines.
  const std::size_t* find(Value value) const {
    const auto at = static_cast<std::size_t>(value.id);
    return at < indices_.size() && indices_[at] != undefined ? &indices_[at] : nullptr;
  }

 private:
  static constexpr std::size_t undefined = static_cast<std::size_t>(-1);
  std::vector<std::size_t> indices_;  // by value
};

// The equations of one region (or of the program) by index, and which of them defines each value.
class Dataflow {
 public:
  Dataflow(const Program& program, const std::vector<Equation>& equations, const Definitions& definitions);

  const Program& program() const { return program_; }
  const Equation& equation(std::size_t i) const { return equations_[i]; }
  std::size_t size() const { return equations_.size(); }
  const Type& result_type(std::size_t i) const { return program_.type(equations_[i].results.front()); }

  // Points to the index of the equation that defines `value`; null if no equation of this list does.
  const std::size_t* definition(Value value) const { return definitions_.find(value); }
  // The value that a chain has to load when it reads `value`. If a free equation (is_free_in_chain) gives `value`, this
  // is the source of that equation's operand, because the chain copies the equation. Otherwise it is `value` itself.
  Value source(Value value) const {
    const std::size_t* const at = definition(value);
    return at == nullptr || equations_[*at].results.size() != 1 ? value : sources_[*at];
  }

 private:
  const Program& program_;
  const std::vector<Equation>& equations_;
  const Definitions& definitions_;
  std::vector<Value> sources_;  // by equation: the source of its only result
};

struct Chain {
  std::int64_t elements = 1;         // of the result of each member
  AxisSet varying;                   // likewise
  std::vector<std::size_t> members;  // indices of equations, ascending; empty after a merge into another chain
};

struct Chains {
  std::vector<Chain> chains;
  std::vector<std::size_t> chain_of;  // by equation: its chain, or no_chain
};

// Finds chains of connected elementwise equations over the same number of elements and the same set of axes, and one
// chain for all arithmetic on scalars, as long as the dependencies between chains have no cycle. Adds to the counts of
// `work`.
Chains find_chains(const Dataflow& flow, FuseWork& work);

}  // namespace pmaptrain
