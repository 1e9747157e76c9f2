#include "core/passes/chains.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <span>

#include "core/ops/all.h"
#include "core/ops/constant/constant.h"
#include "core/ops/fused/fused.h"
#include "core/passes/lists.h"

namespace pmaptrain {
namespace {

bool is_member(const Program& program, const Equation& equation) {
  const OpRules& rules = equation.op.rules();
  return rules.elementwise && !rules.view && !rules.region && equation.results.size() == 1 &&
         numel(program.type(equation.results.front())) > 0;
}

// The largest number of values that a chain may read. A GPU kernel could have some thousand parameters, but would then
// take seconds to compile.
constexpr std::size_t most_reads = 1536;

// Visits the equations in order and adds elementwise ones to chains. A *node* of the dependencies is a chain, or an
// equation that is in no chain.
class Joiner {
 public:
  Joiner(const Dataflow& flow, FuseWork& work)
      : flow_(flow),
        work_(work),
        touching_(flow.program().types.size()),
        needs_(flow.size()),
        readers_(flow.size()),
        levels_(flow.size()),
        seen_(flow.size()) {
    chain_of_.assign(flow.size(), no_chain);
  }

  Chains run() {
    for (std::size_t i = 0; i < flow_.size(); ++i) {
      const bool member = is_member(flow_.program(), flow_.equation(i));
      // A chain copies the free equations before an operand, so its members depend on sources.
      for (Value operand : flow_.equation(i).operands) {
        const std::size_t* const at = flow_.definition(member ? flow_.source(operand) : operand);
        if (at != nullptr) needs_.add(i, *at);
      }
      for (std::size_t at : needs_[i]) readers_.add(at, i);
      if (member) join(i);
      lift({&i, 1});
    }
    return {std::move(chains_), std::move(chain_of_)};
  }

 private:
  // The state of a chain while it grows.
  struct Growth {
    std::size_t level = 0;
    std::vector<Value> touched;  // values of the chain's size that members read or compute
    std::uint64_t seen = 0;      // the number of the last search that visited the chain
  };

  // Adds equation i to the latest chain that can take it, then merges this chain with earlier ones to which i connects
  // it. Begins a new chain if no chain can take i.
  void join(std::size_t i) {
    const std::int64_t elements = numel(flow_.result_type(i));
    const AxisSet varying = flow_.result_type(i).varying;
    std::size_t home = no_chain;
    const auto may_take = [&](std::size_t c) {
      return chains_[c].elements == elements && chains_[c].varying == varying && !chains_[c].members.empty();
    };
    std::erase_if(connected_chains(i), [&](std::size_t c) { return !may_take(c); });
    needed_by_ = readers_of_ = nothing;
    for (std::size_t c : connected_) {
      if (!may_take(c)) continue;  // it was merged
      if (home == no_chain) {
        if (reads(c) + flow_.equation(i).operands.size() > most_reads) continue;
        // Only paths from the chain to i matter: i is the last equation so far, so no chain needs its result.
        if (has_detour(i, c)) continue;
        add(c, i);
        lift({&i, 1});
      } else {
        if (reads(home) + reads(c) > most_reads) continue;
        if (home_needs(home, c) || needs_home(c, home)) continue;
        merge(c, home);
      }
      home = c;
      needed_by_ = readers_of_ = nothing;
    }
    if (home != no_chain) return;
    if (elements == 1) of_scalars_.push_back(chains_.size());
    chains_.push_back({elements, varying, {}});
    growth_.emplace_back();
    add(chains_.size() - 1, i);
  }

  // The number of values of its own size that chain c reads from outside.
  std::size_t reads(std::size_t c) const { return growth_[c].touched.size() - chains_[c].members.size(); }

  // The chains that read or compute an operand of equation i and, for a scalar, all chains of scalars; the latest
  // first.
  std::vector<std::size_t>& connected_chains(std::size_t i) {
    std::vector<std::size_t>& found = connected_;
    found.clear();
    if (numel(flow_.result_type(i)) == 1) found = of_scalars_;
    for (Value operand : flow_.equation(i).operands) {
      const auto touching = touching_[place_of(flow_.source(operand))];
      found.insert(found.end(), touching.begin(), touching.end());
    }
    std::sort(found.begin(), found.end(), std::greater<>());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  void merge(std::size_t into, std::size_t from) {
    std::vector<std::size_t>& members = chains_[into].members;
    for (std::size_t member : chains_[from].members) chain_of_[member] = into;
    members.insert(members.end(), chains_[from].members.begin(), chains_[from].members.end());
    std::sort(members.begin(), members.end());
    chains_[from].members.clear();
    for (Value value : growth_[from].touched) touch(into, value);
    growth_[into].level = std::max(growth_[into].level, growth_[from].level);
    std::vector<std::size_t> readers;
    add_readers_of(into, readers);
    lift(readers);
  }

  void add(std::size_t c, std::size_t i) {
    chain_of_[i] = c;
    chains_[c].members.push_back(i);
    for (Value operand : flow_.equation(i).operands) {
      const Value from = flow_.source(operand);
      if (numel(flow_.program().type(from)) == chains_[c].elements) touch(c, from);
    }
    touch(c, flow_.equation(i).results.front());
  }

  static constexpr std::size_t nothing = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t highest = std::numeric_limits<std::size_t>::max();
  static std::size_t place_of(Value value) { return static_cast<std::size_t>(value.id); }

  void touch(std::size_t c, Value value) {
    const auto touching = touching_[place_of(value)];
    if (std::find(touching.begin(), touching.end(), c) != touching.end()) return;
    touching_.add(place_of(value), c);
    growth_[c].touched.push_back(value);
  }

  // ---- levels: a node has a higher level than all nodes that it needs, so a search for a node can stop at its level

  std::size_t& level(std::size_t i) { return chain_of_[i] == no_chain ? levels_[i] : growth_[chain_of_[i]].level; }

  bool is_same_node(std::size_t i, std::size_t other) const {
    return i == other || (chain_of_[i] != no_chain && chain_of_[i] == chain_of_[other]);
  }

  void add_readers_of(std::size_t c, std::vector<std::size_t>& readers) const {
    for (std::size_t i : chains_[c].members) readers.insert(readers.end(), readers_[i].begin(), readers_[i].end());
  }

  // Raises each of these equations' nodes to a level above all nodes that it needs, and then does the same for the
  // readers of its results.
  void lift(std::span<const std::size_t> starts) {
    open_.assign(starts.begin(), starts.end());
    while (!open_.empty()) {
      const std::size_t i = open_.back();
      open_.pop_back();
      ++work_.level_visits;
      std::size_t lowest = 0;
      for (std::size_t at : needs_[i]) {
        if (!is_same_node(at, i)) lowest = std::max(lowest, level(at) + 1);
      }
      if (level(i) >= lowest) continue;
      level(i) = lowest;
      if (chain_of_[i] == no_chain) {
        open_.insert(open_.end(), readers_[i].begin(), readers_[i].end());
      } else {
        add_readers_of(chain_of_[i], open_);
      }
    }
  }

  // Whether dependencies lead from chain c through another node to equation i (or to chain d). One equation for both
  // would then depend on itself.
  bool has_detour(std::size_t i, std::size_t c) {
    if (needed_by_ != i) {
      const auto known = leads(c, highest, [&](std::size_t at) { return at == i; });
      if (known) return *known;
      find_needs({&i, 1}, i);
    }
    return needed_[c] == needed_search_;
  }
  // The same between chain `home` of the equation that is being joined and chain c, in either direction.
  bool home_needs(std::size_t home, std::size_t c) {
    if (needed_by_ != home) {
      const auto known = leads(c, growth_[home].level, [&](std::size_t at) { return chain_of_[at] == home; });
      if (known) return *known;
      find_needs(chains_[home].members, home);
    }
    return needed_[c] == needed_search_;
  }
  bool needs_home(std::size_t c, std::size_t home) {
    if (readers_of_ != home) {
      const auto known = leads(home, growth_[c].level, [&](std::size_t at) { return chain_of_[at] == c; });
      if (known) return *known;
      find_readers(home);
    }
    return reading_[c] == reading_search_;
  }

  // Searches from chain c along readers, through nodes below level `top`. Returns whether it reached the goal through
  // another node; nothing if it takes more than a few steps, because the search along needs may then be shorter.
  template <class F>
  std::optional<bool> leads(std::size_t c, std::size_t top, F&& is_goal) {
    constexpr std::int64_t most = 64;
    ++search_;
    open_.clear();
    std::int64_t steps = 0;
    bool found = false;
    const auto visit_readers = [&](std::size_t at, bool is_elsewhere) {
      for (std::size_t reader : readers_[at]) {
        ++steps;
        if (is_same_node(reader, at) || seen_[reader] == search_) continue;
        if (is_goal(reader)) {
          found |= is_elsewhere;
        } else if (level(reader) < top) {
          seen_[reader] = search_;
          open_.push_back(reader);
        }
      }
      ++steps;
    };
    const auto visit_node = [&](std::size_t at, bool is_elsewhere) {
      if (chain_of_[at] == no_chain) return visit_readers(at, is_elsewhere);
      for (std::size_t member : chains_[chain_of_[at]].members) {
        visit_readers(member, is_elsewhere);
        if (steps > most) return;
      }
    };
    visit_node(chains_[c].members.front(), false);
    while (!open_.empty() && !found && steps <= most) {
      const std::size_t at = open_.back();
      open_.pop_back();
      visit_node(at, true);
    }
    work_.search_visits += steps;
    if (!found && steps > most) return std::nullopt;
    return found;
  }

  // Searches from `starts`, which are equation i or chain `of`, along the equations that they need. Sets needed_ of the
  // chains in connected_ that they need through another node: of all at once, since a scalar has many.
  void find_needs(std::span<const std::size_t> starts, std::size_t of) {
    needed_by_ = of;
    needed_.resize(chains_.size());
    needed_search_ = ++search_;
    open_.clear();
    std::size_t floor = highest;
    for (const std::size_t c : connected_) floor = std::min(floor, growth_[c].level);
    const auto visit = [&](std::size_t at) {
      if (seen_[at] == search_ || level(at) <= floor) return;
      seen_[at] = search_;
      open_.push_back(at);
    };
    const auto reach = [&](std::size_t at) {
      if (chain_of_[at] != no_chain) needed_[chain_of_[at]] = search_;
      visit(at);
    };
    for (const std::size_t i : starts) {
      ++work_.search_visits;
      for (const std::size_t at : needs_[i]) {
        if (!is_same_node(at, i)) visit(at);
      }
    }
    search_nodes(needs_, reach);
  }

  // The same along the readers of chain c: sets reading_ of the chains that need it through another node.
  void find_readers(std::size_t c) {
    readers_of_ = c;
    reading_.resize(chains_.size());
    reading_search_ = ++search_;
    open_.clear();
    std::size_t top = 0;
    for (const std::size_t each : connected_) top = std::max(top, growth_[each].level);
    const auto visit = [&](std::size_t at) {
      if (seen_[at] == search_ || level(at) >= top) return;
      seen_[at] = search_;
      open_.push_back(at);
    };
    const auto reach = [&](std::size_t at) {
      if (chain_of_[at] != no_chain) reading_[chain_of_[at]] = search_;
      visit(at);
    };
    for (const std::size_t i : chains_[c].members) {
      ++work_.search_visits;
      for (const std::size_t at : readers_[i]) {
        if (!is_same_node(at, i)) visit(at);
      }
    }
    search_nodes(readers_, reach);
  }

  // Visits the nodes in open_, and calls `reach` with what each leads to outside of itself.
  template <class F>
  void search_nodes(const Lists& edges, F&& reach) {
    const auto follow = [&](std::size_t from) {
      ++work_.search_visits;
      for (const std::size_t at : edges[from]) {
        if (!is_same_node(at, from)) reach(at);
      }
    };
    while (!open_.empty()) {
      const std::size_t at = open_.back(), chain = chain_of_[at];
      open_.pop_back();
      if (chain == no_chain) {
        follow(at);
      } else if (growth_[chain].seen != search_) {
        growth_[chain].seen = search_;
        for (const std::size_t member : chains_[chain].members) follow(member);
      }
    }
  }

  const Dataflow& flow_;
  FuseWork& work_;
  std::vector<Chain> chains_;
  std::vector<Growth> growth_;           // by chain
  std::vector<std::size_t> of_scalars_;  // the chains of one element
  Lists touching_;                       // by value: the chains that touch it
  std::vector<std::size_t> chain_of_;    // by equation: its chain, or no_chain
  Lists needs_;                          // by equation: the equations that define its operands
  Lists readers_;                        // by equation: the readers of its result among the equations visited so far
  std::vector<std::size_t> levels_;      // by equation, for equations in no chain
  std::vector<std::uint64_t> seen_;      // by equation: the number of the last search that visited it
  std::uint64_t search_ = 0;             // the number of the current search
  std::vector<std::size_t> connected_;   // the result of connected_chains()
  // What find_needs() and find_readers() have found last, by chain: the number of the search that has reached it; and
  // the equation or the chain from which they have searched.
  std::vector<std::uint64_t> needed_, reading_;
  std::uint64_t needed_search_ = 0, reading_search_ = 0;
  std::size_t needed_by_ = nothing, readers_of_ = nothing;
  std::vector<std::size_t> open_;  // the work list of a search or of lift()
};

}  // namespace

bool is_free_in_chain(const Program& program, const Equation& equation) {
  if (ops::splat_of(equation.op) || equation.is_view()) return true;
  const auto* broadcast = equation.op.as<ops::Broadcast>();
  if (broadcast == nullptr || !ops::spread_of(*broadcast)) return false;
  return numel(program.type(equation.operands.front())) != numel(program.type(equation.results.front()));
}

void Definitions::add(const std::vector<Equation>& equations) {
  for (std::size_t i = 0; i < equations.size(); ++i) {
    for (Value result : equations[i].results) set(result, i);
  }
}

void Definitions::set(Value value, std::size_t index) {
  const auto at = static_cast<std::size_t>(value.id);
  if (at >= indices_.size()) indices_.resize(at + 1, undefined);
  indices_[at] = index;
}

void Definitions::remove(const std::vector<Equation>& equations) {
  for (const Equation& equation : equations) {
    for (Value result : equation.results) indices_[static_cast<std::size_t>(result.id)] = undefined;
  }
}

Dataflow::Dataflow(const Program& program, const std::vector<Equation>& equations, const Definitions& definitions)
    : program_(program), equations_(equations), definitions_(definitions) {
  sources_.reserve(equations_.size());
  for (const Equation& equation : equations_) {
    const bool passes_on =
        equation.results.size() == 1 && !equation.operands.empty() && is_free_in_chain(program_, equation);
    sources_.push_back(passes_on ? source(equation.operands.front()) : equation.results.front());
  }
}

Chains find_chains(const Dataflow& flow, FuseWork& work) { return Joiner(flow, work).run(); }

}  // namespace pmaptrain
