// The first step of fusing: decides which elementwise equations form a chain.
#pragma once

#include <cstddef>
#include <vector>

#include "core/graph/program.h"
#include "core/passes/fuse.h"

namespace pmaptrain {

inline constexpr std::size_t no_chain = static_cast<std::size_t>(-1);

// Whether an equation costs nothing inside a chain, so that every chain that reads its result contains a copy:
// constants of one value, views, and broadcasts that repeat values.
bool is_free(const Program& program, const Equation& equation);

// Maps values to the equations of a list that define them. One instance serves a whole program, since a region sees
// only its own values.
class Definitions {
 public:
  void add(const std::vector<Equation>& equations);
  void remove(const std::vector<Equation>& equations);
  void set(Value value, std::size_t place);
  // The equation's index in its list; null for a value that no added equation defines.
  const std::size_t* find(Value value) const {
    const auto at = static_cast<std::size_t>(value.id);
    return at < places_.size() && places_[at] != nowhere ? &places_[at] : nullptr;
  }

 private:
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);
  std::vector<std::size_t> places_;  // by value
};

// The equations of one region (or of the program) by index, and which of them defines each value.
class Dataflow {
 public:
  Dataflow(const Program& program, const std::vector<Equation>& equations, const Definitions& definitions);

  const Program& program() const { return program_; }
  const Equation& equation(std::size_t i) const { return equations_[i]; }
  std::size_t size() const { return equations_.size(); }
  const Type& result_type(std::size_t i) const { return program_.type(equations_[i].results.front()); }

  // The equation that defines `value`; null if it is defined outside.
  const std::size_t* definition(Value value) const { return definitions_.find(value); }
  // The value on which a chain depends when it reads `value`: equations that are copied into the chain are skipped.
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
  std::int64_t elements = 1;
  AxisSet varying;
  std::vector<std::size_t> members;  // equations in order; empty if another chain has taken them
};

struct Chains {
  std::vector<Chain> chains;
  std::vector<std::size_t> of;  // by equation: its chain, or no_chain
};

// Finds chains of connected elementwise equations over the same number of elements and the same set of axes, and one
// chain for all arithmetic on scalars, as long as the dependencies between chains have no cycle.
Chains find_chains(const Dataflow& flow, FuseWork& work);

}  // namespace pmaptrain
