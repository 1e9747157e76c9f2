// The first half of fusing: which elementwise equations become one.
#pragma once

#include <cstddef>
#include <vector>

#include "core/graph/program.h"
#include "core/passes/fuse.h"

namespace pmaptrain {

inline constexpr std::size_t no_chain = static_cast<std::size_t>(-1);

// Whether an equation is copied into every chain that reads its result, since it costs nothing there: constants of one
// value, views, and broadcasts that repeat.
bool is_free(const Program& program, const Equation& equation);

// Which equation of its list defines a value. One instance for a whole program, since a region sees its own values
// only.
class Definitions {
 public:
  void add(const std::vector<Equation>& equations);
  void remove(const std::vector<Equation>& equations);
  void set(Value value, std::size_t place);
  // The equation's place in its list; null for a value that none of the added equations defines.
  const std::size_t* find(Value value) const {
    const auto at = static_cast<std::size_t>(value.id);
    return at < places_.size() && places_[at] != nowhere ? &places_[at] : nullptr;
  }

 private:
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);
  std::vector<std::size_t> places_;  // by value
};

// The equations of one region (or of the program), by their place in it, and which of them defines each value.
class Dataflow {
 public:
  Dataflow(const Program& program, const std::vector<Equation>& equations, const Definitions& definitions);

  const Program& program() const { return program_; }
  const Equation& equation(std::size_t i) const { return equations_[i]; }
  std::size_t size() const { return equations_.size(); }
  const Type& result_type(std::size_t i) const { return program_.type(equations_[i].results.front()); }

  // The equation that defines `value`; null where it comes from outside.
  const std::size_t* definition(Value value) const { return definitions_.find(value); }
  // The value that a chain depends on when it reads `value`: equations that are copied into the chain are skipped.
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

// Puts connected elementwise equations over one number of elements and one set of axes into one chain, and all
// arithmetic on scalars into one, as long as the dependencies between chains stay acyclic.
Chains find_chains(const Dataflow& flow, FuseWork& work);

}  // namespace pmaptrain
