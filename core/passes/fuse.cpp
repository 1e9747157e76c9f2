#include "core/passes/fuse.h"

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "core/graph/passes.h"
#include "core/ops/collective/collective.h"
#include "core/ops/constant/constant.h"
#include "core/ops/elementwise/binary.h"
#include "core/ops/fused/fused.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/reshape/reshape.h"
#include "core/passes/chains.h"
#include "core/passes/lists.h"
#include "core/passes/order.h"
#include "core/passes/recompute.h"
#include "core/passes/uses.h"

namespace pmaptrain {
namespace {

// Replaces a broadcast or a reduction by a view if every dimension that it adds or removes has size 1, unless it
// changes the element type.
void make_views(const Program& program, std::vector<Equation>& equations) {
  for (Equation& equation : equations) {
    const bool is_reduction =
        equation.op.as<ops::ReduceSum>() != nullptr || equation.op.as<ops::ReduceMax>() != nullptr;
    if (!is_reduction && equation.op.as<ops::Broadcast>() == nullptr) continue;
    const Type &from = program.type(equation.operands.front()), &to = program.type(equation.results.front());
    if (from.dtype != to.dtype || numel(from) != numel(to) || numel(to) == 0) continue;
    equation.op = ops::Reshape{to.shape};
  }
}

// Fuses the equations of one region, or of the program.
class Fuser {
 public:
  Fuser(Program& program, std::vector<Equation>& equations, std::span<const Value> yielded, Definitions& definitions)
      : program_(program),
        equations_(equations),
        yielded_(yielded),
        definitions_(noted(definitions, equations)),
        flow_(program, equations, definitions) {}

  void run(FuseWork& work) {
    Chains found = find_chains(flow_, work);
    groups_ = std::move(found.chains);
    group_of_ = std::move(found.chain_of);
    sink_ends();
    for (Chain& group : groups_) {
      if (is_useful(group)) continue;
      for (std::size_t member : group.members) group_of_[member] = none;
      group.members.clear();
    }
    copies_ = find_recomputed(flow_, {groups_, group_of_}, find_readers());
    emit();
  }

 private:
  static constexpr std::size_t none = no_chain;

  static Definitions& noted(Definitions& definitions, const std::vector<Equation>& equations) {
    definitions.add(equations);
    return definitions;
  }

  const Type& result_type(std::size_t i) const { return flow_.result_type(i); }
  const std::size_t* definition(Value value) const { return flow_.definition(value); }
  Value source(Value value) const { return flow_.source(value); }

  // Calls sink() for each chain and each other chain that reads its results.
  void sink_ends() {
    // sink() moves equations between chains but does not change their readers, so readers are computed once.
    const Lists readers = find_readers();
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      std::vector<std::size_t> others;
      for (std::size_t member : groups_[g].members) {
        for (std::size_t reader : readers[member]) {
          if (reader != none && group_of_[reader] != g) others.push_back(group_of_[reader]);
        }
      }
      for (std::size_t h : others) sink(g, h, readers);
    }
  }

  // Moves the last equations of chain g to chain h, if nothing but h reads their results and the move reduces memory
  // traffic. Example: g computes an update, and h selects between the update and the old value. The end of g moves to
  // h, so the update is never stored.
  void sink(std::size_t g, std::size_t h, const Lists& readers) {
    Chain &from = groups_[g], &to = groups_[h];
    const bool alike = from.elements == to.elements && from.varying == to.varying && from.elements > 1;
    if (g == h || !alike || from.members.empty() || to.members.empty()) return;
    std::vector<std::size_t> moved, kept;  // in reverse order
    const auto in_end = [&](std::size_t reader) {
      return reader != none && (group_of_[reader] == h || std::binary_search(moved.rbegin(), moved.rend(), reader));
    };
    for (std::size_t m = from.members.size(); m-- > 0;) {
      const std::size_t i = from.members[m];
      const bool only_there = !readers[i].empty() && std::all_of(readers[i].begin(), readers[i].end(), in_end);
      (only_there ? moved : kept).push_back(i);
    }
    if (moved.empty() || kept.empty()) return;
    std::reverse(kept.begin(), kept.end());
    std::vector<std::size_t> grown = to.members;
    grown.insert(grown.end(), moved.begin(), moved.end());
    std::sort(grown.begin(), grown.end());
    const std::size_t before = traffic(from.members, readers) + traffic(to.members, readers);
    if (traffic(kept, readers) + traffic(grown, readers) >= before) return;
    from.members = std::move(kept);
    to.members = std::move(grown);
    for (std::size_t i : moved) group_of_[i] = h;
  }

  // By equation: its readers. A reader in a chain is given by its index, any other by `none`.
  Lists find_readers() const {
    Lists readers(equations_.size());
    const std::vector<bool> live = needed().equations;
    for (std::size_t i = 0; i < equations_.size(); ++i) {
      if (group_of_[i] == none && !live[i]) continue;
      for (Value operand : equations_[i].operands) {
        const std::size_t* const at = definition(read_in(group_of_[i], operand));
        if (at != nullptr) readers.add(*at, group_of_[i] == none ? none : i);
      }
    }
    for (Value value : yielded_) {
      if (const std::size_t* const at = definition(value)) readers.add(*at, none);
    }
    return readers;
  }

  // How many arrays of its own size a chain of these members would read from memory and write to it.
  std::size_t traffic(const std::vector<std::size_t>& members, const Lists& readers) const {
    const std::unordered_set<std::size_t> own(members.begin(), members.end());
    std::unordered_set<std::int32_t> read;
    std::size_t written = 0;
    for (std::size_t i : members) {
      for (Value operand : equations_[i].operands) {
        const Value from = source(operand);
        const std::size_t* const at = definition(from);
        const bool large = numel(program_.type(from)) == numel(result_type(i));
        if (large && (at == nullptr || !own.contains(*at))) read.insert(from.id);
      }
      const bool leaves = std::any_of(readers[i].begin(), readers[i].end(),
                                      [&](std::size_t r) { return r == none || !own.contains(r); });
      if (leaves) ++written;
    }
    return read.size() + written;
  }

  // Whether a group becomes a fused equation: it reads a value from outside, and has several members or can copy a
  // broadcast.
  bool is_useful(const Chain& group) const {
    if (group.members.empty()) return false;
    bool reads = false, broadcasts = false;
    for (std::size_t i : group.members) {
      for (Value operand : equations_[i].operands) {
        const std::size_t* at = definition(source(operand));
        reads |= at == nullptr || (group_of_[*at] != group_of_[i] && !ops::splat_of(equations_[*at].op));
        for (at = definition(operand); at != nullptr && is_free_in_chain(program_, equations_[*at]);
             at = definition(operand)) {
          broadcasts |= equations_[*at].op.as<ops::Broadcast>() != nullptr;
          if (equations_[*at].operands.empty()) break;
          operand = equations_[*at].operands.front();
        }
      }
    }
    return reads && (broadcasts || group.members.size() > 1);
  }

  // ---- the new order: each group is at the index of its last member, or later

  void emit() {
    const Needed live = needed();
    const std::vector<bool> used = find_used(live);
    inside_.resize(program_.types.size());
    std::vector<Equation> made;      // fused equations, and pvary equations of their operands
    std::vector<std::size_t> which;  // by node: index in `made`; none for an equation that stays
    std::vector<std::size_t> place;  // by node: index of its last equation
    const auto add = [&](Equation equation, std::size_t last) {
      which.push_back(made.size());
      place.push_back(last);
      made.push_back(std::move(equation));
    };
    std::vector<bool> begun(groups_.size());
    for (std::size_t i = 0; i < equations_.size(); ++i) {
      const std::size_t g = group_of_[i];
      if (g == none) {
        which.push_back(none);
        place.push_back(i);
      } else if (!begun[g]) {
        begun[g] = true;
        const std::size_t last = groups_[g].members.back();
        Equation fused = make_fused(g, live, used);
        if (fused.results.empty()) continue;  // others compute all of it again
        add(std::move(fused), last);
        for (Equation& varied : varied_) add(std::move(varied), last);
        varied_.clear();
      }
    }
    definitions_.remove(equations_);
    std::vector<Equation> nodes;
    nodes.reserve(which.size());
    for (std::size_t n = 0; n < which.size(); ++n) {
      nodes.push_back(std::move(which[n] == none ? equations_[place[n]] : made[which[n]]));
    }
    definitions_.add(nodes);
    equations_ = topologically_sorted(std::move(nodes), place, definitions_);
  }

  // What yielded values depend on: equations where they stand, and equations that a group computes again, with the
  // group.
  struct Needed {
    std::vector<bool> equations;
    std::set<std::pair<std::size_t, std::size_t>> copies;
  };

  // By equation: whether its result is read outside of its group, so that the group has to store it.
  std::vector<bool> find_used(const Needed& live) const {
    std::vector<bool> used(equations_.size());
    for (Value value : yielded_) {
      if (const std::size_t* const at = definition(value)) used[*at] = true;
    }
    const auto read_by = [&](std::size_t i, std::size_t g) {
      for (Value operand : equations_[i].operands) {
        const std::size_t* const at = definition(read_in(g, operand));
        if (at != nullptr && (g == none || !is_inside(*at, g))) used[*at] = true;
      }
    };
    for (std::size_t i = 0; i < equations_.size(); ++i) {
      if (live.equations[i]) read_by(i, group_of_[i]);
    }
    for (const auto& [i, g] : live.copies) read_by(i, g);
    return used;
  }

  // A chain copies the free equations before an operand, so it reads the source. Other equations read the operand
  // itself.
  Value read_in(std::size_t g, Value operand) const { return g == none ? operand : source(operand); }

  Needed needed() const {
    Needed found{std::vector<bool>(equations_.size()), {}};
    std::vector<std::pair<std::size_t, std::size_t>> open;
    const auto visit = [&](Value value, std::size_t g) {
      const std::size_t* const at = definition(value);
      if (at == nullptr) return;
      if (g != none && group_of_[*at] != g && is_inside(*at, g)) {
        if (found.copies.emplace(*at, g).second) open.emplace_back(*at, g);
      } else if (!found.equations[*at]) {
        found.equations[*at] = true;
        open.emplace_back(*at, group_of_[*at]);
      }
    };
    for (Value value : yielded_) visit(value, none);
    while (!open.empty()) {
      const auto [i, g] = open.back();
      open.pop_back();
      for (Value operand : equations_[i].operands) visit(read_in(g, operand), g);
    }
    return found;
  }

  // ---- the equation of one group

  Value new_value(const Type& type) {
    program_.types.push_back(type);
    return Value{static_cast<std::int32_t>(program_.types.size() - 1)};
  }

  Equation make_fused(std::size_t g, const Needed& live, const std::vector<bool>& used) {
    Equation fused{ops::Fused{}, {}, {}, equations_[groups_[g].members.front()].origin, {}};
    Region region;
    for (std::size_t i : groups_[g].members) {
      if (!live.equations[i]) continue;  // only others compute it, again
      Equation copy = equations_[i];
      for (Value& operand : copy.operands) operand = bring_inside(operand, g, region, fused);
      const Value result = copy.results.front();
      const Value inner = new_value(Type(program_.type(result)));
      copy.results = {inner};
      put_inside(result, inner);
      region.equations.push_back(std::move(copy));
      if (used[i]) {
        fused.results.push_back(result);
        region.results.push_back(inner);
      }
    }
    fused.regions.push_back(std::move(region));
    for (Value value : brought_) inside_[static_cast<std::size_t>(value.id)] = {};
    brought_.clear();
    return fused;
  }

  // The value that stands for `value` in the region: a member's result, the result of a copied equation, or a new
  // parameter.
  Value bring_inside(Value value, std::size_t g, Region& region, Equation& fused) {
    const Value found = inside_[static_cast<std::size_t>(value.id)];
    if (found != Value{}) return found;
    const std::size_t* const at = definition(value);
    Type type = program_.type(value);
    if (at != nullptr && goes_inside(*at, g)) {
      Equation copy = equations_[*at];
      for (Value& operand : copy.operands) operand = bring_inside(operand, g, region, fused);
      const bool reads_varied = !copy.operands.empty() && program_.type(copy.operands[0]).varying == groups_[g].varying;
      // A parameter varies as its chain does, so a pvary of it has no effect and is dropped.
      if (reads_varied && copy.op.as<ops::Pvary>() != nullptr) return put_inside(value, copy.operands[0]);
      if (reads_varied) type.varying = groups_[g].varying;
      const Value inner = new_value(type);
      copy.results = {inner};
      region.equations.push_back(std::move(copy));
      return put_inside(value, inner);
    }
    Value operand = value;
    const AxisSet missing = groups_[g].varying - type.varying;
    if (!missing.empty()) {
      type.varying = groups_[g].varying;
      operand = new_value(type);
      varied_.push_back({ops::Pvary{missing}, {value}, {operand}, fused.origin, {}});
    }
    const Value inner = new_value(type);
    fused.operands.push_back(operand);
    region.params.push_back(inner);
    return put_inside(value, inner);
  }

  Value put_inside(Value value, Value inner) {
    inside_[static_cast<std::size_t>(value.id)] = inner;
    brought_.push_back(value);
    return inner;
  }

  // Whether a group computes an equation: as a member, or again (find_recomputed).
  bool is_inside(std::size_t i, std::size_t g) const {
    return group_of_[i] == g || (!copies_.empty() && std::binary_search(copies_[g].begin(), copies_[g].end(), i));
  }

  // Whether the region of group g contains equation i as a member, or as a copy of a constant or a broadcast. A view is
  // copied if the region contains its operand; otherwise it stays outside, where it costs nothing.
  bool goes_inside(std::size_t i, std::size_t g) const {
    const Equation& equation = equations_[i];
    if (!is_free_in_chain(program_, equation)) return is_inside(i, g);
    const std::int64_t elements = numel(result_type(i));
    if (elements != 1 && elements != groups_[g].elements) return false;
    if (!equation.is_view()) return true;
    const std::size_t* const at = definition(equation.operands.front());
    return at != nullptr && goes_inside(*at, g);
  }

  Program& program_;
  std::vector<Equation>& equations_;
  const std::span<const Value> yielded_;
  Definitions& definitions_;
  const Dataflow flow_;
  std::vector<std::size_t> group_of_;  // by equation: its group, or none
  std::vector<Chain> groups_;          // the chains
  std::vector<std::vector<std::size_t>>
      copies_;                    // by group: the equations of others that it computes again; empty at first
  std::vector<Value> inside_;     // by value: its value in the current region; see bring_inside()
  std::vector<Value> brought_;    // the values for which inside_ is set
  std::vector<Equation> varied_;  // pvary equations for operands of the current group
};

void fuse_region(Program& program, std::vector<Equation>& equations, std::span<const Value> yielded,
                 Definitions& definitions, FuseWork& work) {
  for (Equation& equation : equations) {
    for (Region& region : equation.regions) fuse_region(program, region.equations, region.results, definitions, work);
  }
  make_views(program, equations);
  Fuser(program, equations, yielded, definitions).run(work);
}

}  // namespace

Program fuse(Program program) {
  FuseWork work;
  return fuse(std::move(program), work);
}

Program fuse(Program program, FuseWork& work) {
  const std::vector<Value> yielded = yielded_by(program);
  Definitions definitions;
  fuse_region(program, program.equations, yielded, definitions, work);
  return simplify(std::move(program));
}

}  // namespace pmaptrain
