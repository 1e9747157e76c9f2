// The first half of fusing: which elementwise equations become one.
#pragma once

#include <cstddef>
#include <vector>

#include "core/graph/program.h"
#include "core/passes/fuse.h"

namespace pmaptrain {

inline constexpr std::size_t no_chain = static_cast<std::size_t>(-1);

// What goes into every chain that reads it, as often as there are any, since it costs nothing there: constants, views,
// and broadcasts that repeat.
bool is_free(const Program& program, const Equation& equation);

// Which equation of its list gives a value. One for a whole program, since a region sees its own values only.
class Definitions {
 public:
  void add(const std::vector<Equation>& equations);
  void remove(const std::vector<Equation>& equations);
  // The equation's place in its list; null for a value that none of those added gives.
  const std::size_t* find(Value value) const {
    const auto at = static_cast<std::size_t>(value.id);
    return at < places_.size() && places_[at] != nowhere ? &places_[at] : nullptr;
  }

 private:
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);
  std::vector<std::size_t> places_;  // by value
};

// The equations of one region (or of the program), by their place in it, and who gives what.
class Dataflow {
 public:
  Dataflow(const Program& program, const std::vector<Equation>& equations, const Definitions& definitions);

  const Program& program() const { return program_; }
  const Equation& equation(std::size_t i) const { return equations_[i]; }
  std::size_t size() const { return equations_.size(); }
  const Type& result_type(std::size_t i) const { return program_.type(equations_[i].results.front()); }

  // The equation that gives `value`; null where it comes from outside.
  const std::size_t* definition(Value value) const { return definitions_.find(value); }
  // What a chain that reads `value` really depends on, through what goes inside.
  Value source(Value value) const {
    const std::size_t* const at = definition(value);
    return at == nullptr || equations_[*at].results.size() != 1 ? value : sources_[*at];
  }

 private:
  const Program& program_;
  const std::vector<Equation>& equations_;
  const Definitions& definitions_;
  std::vector<Value> sources_;  // by equation, of its only result
};

struct Chain {
  std::int64_t elements = 1;
  AxisSet varying;
  std::vector<std::size_t> members;  // equations, in order; none where another chain has taken them
};

struct Chains {
  std::vector<Chain> chains;
  std::vector<std::size_t> of;  // by equation; no_chain
};

// Connected elementwise equations over one number of elements and one set of axes are in one chain, and so is all
// arithmetic on scalars, where no chain then waits for another that waits for it.
Chains find_chains(const Dataflow& flow, FuseWork& work);

}  // namespace pmaptrain
