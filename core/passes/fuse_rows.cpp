#include "core/passes/fuse_rows.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/graph/check.h"
#include "core/ops/constant/constant.h"
#include "core/ops/fused/fused.h"
#include "core/ops/fused_rows/fused_rows.h"
#include "core/passes/chains.h"
#include "core/passes/lists.h"
#include "core/passes/order.h"
#include "core/passes/slice.h"
#include "core/passes/uses.h"

namespace pmaptrain {
namespace {

// Equations that become one `fused_rows` equation.
struct RowGroup {
  std::int64_t rows = 0, length = 0;  // the number of rows, and the elements of each
  std::int64_t dim0 = 0;              // the size of dimension 0 of the reduced values
  AxisSet varying;
  std::set<std::size_t> members;  // equations
};

// Fuses the equations of one region, or of the program.
class RowFuser {
 public:
  RowFuser(Program& program, std::vector<Equation>& equations, std::span<const Value> yielded, Definitions& definitions)
      : program_(program),
        equations_(equations),
        definitions_(definitions),
        group_of_(equations.size(), none),
        needs_(equations.size()),
        needed_by_(equations.size()),
        readers_(equations.size()) {
    definitions_.add(equations_);
    for (const Value value : yielded) yielded_.insert(value.id);
    for (std::size_t i = 0; i < equations_.size(); ++i) {
      for (const Value operand : equations_[i].operands) {
        if (const std::size_t* const at = definitions_.find(operand)) readers_.add(*at, i);
        if (equations_[i].operands.size() == 1) sole_readers_[source(operand).id].push_back(i);
        const std::size_t* const at = definitions_.find(source(operand));
        if (at == nullptr || is_free(i) || is_free(*at)) continue;
        needs_.add(i, *at);
        needed_by_.add(*at, i);
      }
    }
  }

  bool run() {
    lowest_ = equations_.size();
    for (std::size_t i = 0; i < equations_.size(); ++i) {
      if (group_of_[i] == none && begins(i)) grow();
    }
    if (groups_.empty()) return false;
    emit();
    return true;
  }

 private:
  static constexpr std::size_t none = no_chain;

  // Whether the equation costs nothing in a group, so that every group that reads its result gets a copy.
  bool is_free(std::size_t i) const { return ops::splat_of(equations_[i].op).has_value() || equations_[i].is_view(); }
  // The value before any views.
  Value source(Value value) const {
    for (const std::size_t* at = definitions_.find(value); at != nullptr && equations_[*at].is_view();
         at = definitions_.find(value)) {
      value = equations_[*at].operands[0];
    }
    return value;
  }

  // ---- which equations form a group

  // If equation `i` is a suitable reduction, appends a group with it and returns true.
  bool begins(std::size_t i) {
    const Equation& equation = equations_[i];
    const std::optional<Rows> reduced = rows_to_fuse(program_, equation);
    if (!reduced) return false;
    RowGroup group;
    group.rows = reduced->rows;
    group.length = reduced->length;
    group.dim0 = program_.type(equation.operands[0]).shape[0];
    group.varying = program_.type(equation.results[0]).varying;
    group.members = {i};
    group_of_[i] = groups_.size();
    groups_.push_back(std::move(group));
    return true;
  }

  // Adds connected equations to the last group: equations that read results of members, define their operands, or
  // reduce the same operands.
  void grow() {
    const std::size_t g = groups_.size() - 1;
    std::set<std::size_t> open;
    const auto add_neighbours = [&](std::size_t i) {
      lowest_ = std::min(lowest_, i);
      for (const std::size_t at : needs_[i]) open.insert(at);
      for (const std::size_t at : needed_by_[i]) open.insert(at);
      for (const Value operand : equations_[i].operands) {
        const auto found = sole_readers_.find(source(operand).id);
        if (found == sole_readers_.end()) continue;
        for (const std::size_t at : found->second) {
          if (reduces_rows(equations_[at], groups_[g])) open.insert(at);
        }
      }
    };
    add_neighbours(*groups_[g].members.begin());
    for (bool grown = true; grown;) {
      grown = false;
      for (const std::size_t i : std::vector(open.begin(), open.end())) {
        if (group_of_[i] != none || !fits(i, groups_[g])) {
          open.erase(i);
        } else if (join(i, g)) {
          open.erase(i);
          add_neighbours(i);
          grown = true;
        }
      }
    }
    const std::set<std::size_t>& members = groups_[g].members;
    const bool reads = std::any_of(members.begin(), members.end(), [&](std::size_t i) {
      const std::vector<Value>& operands = equations_[i].operands;
      return std::any_of(operands.begin(), operands.end(), [&](Value value) { return !goes_inside(value, g); });
    });
    if (members.size() > 1 && reads) return;
    for (const std::size_t i : members) group_of_[i] = none;
    groups_.pop_back();
  }

  bool reduces_rows(const Equation& equation, const RowGroup& group) const {
    return ops::reduces_rows(equation.op, program_.type(equation.operands[0]).shape, group.length);
  }

  bool fits(std::size_t i, const RowGroup& group) const {
    const Equation& equation = equations_[i];
    const auto has_rows = [&](Value value) {
      const Type& type = program_.type(value);
      return numel(type) == 1 || (!type.shape.empty() && type.shape[0] == group.dim0);
    };
    const auto has_size = [&](Value value) {
      const std::int64_t size = numel(program_.type(value));
      return has_rows(value) && (size == 1 || size == group.rows || size == group.rows * group.length);
    };
    // A constant would be copied into the region, which has vectors as parameters only.
    const auto is_operand = [&](Value value) {
      const std::size_t* const at = definitions_.find(source(value));
      const bool is_constant = at != nullptr && ops::splat_of(equations_[*at].op).has_value();
      return has_size(value) || (!is_constant && ops::is_vector(numel(program_.type(value)), group.rows, group.length));
    };
    const auto is_result = [&](Value value) {
      return has_size(value) && numel(program_.type(value)) > 1 && program_.type(value).varying == group.varying;
    };
    if (!equation.op.local() || equation.operands.empty() || is_free(i) ||
        !std::all_of(equation.operands.begin(), equation.operands.end(), is_operand) ||
        !std::all_of(equation.results.begin(), equation.results.end(), is_result)) {
      return false;
    }
    if (equation.op.as<ops::Fused>() == nullptr) return fits_alone(equation, group);
    return std::all_of(equation.regions[0].equations.begin(), equation.regions[0].equations.end(),
                       [&](const Equation& inner) { return fits_alone(inner, group); });
  }

  bool fits_alone(const Equation& equation, const RowGroup& group) const {
    return ops::fits_rows(equation, types_of(program_, equation.operands), program_.type(equation.results[0]),
                          group.rows, group.length);
  }

  // Adds an equation to a group. Returns false, and changes nothing, if the group would then need an equation outside
  // of the group that needs a result of the group.
  bool join(std::size_t i, std::size_t g) {
    group_of_[i] = g;
    groups_[g].members.insert(i);
    lowest_ = std::min(lowest_, i);
    if (!has_detour(g)) return true;
    group_of_[i] = none;
    groups_[g].members.erase(i);
    return false;
  }

  // Whether group g needs a result of its own through nodes outside of it.
  bool has_detour(std::size_t g) const {
    std::vector<bool> seen(equations_.size());
    std::vector<std::size_t> open;
    const auto visit_needs = [&](std::size_t i) {
      for (const std::size_t at : needs_[i]) {
        const bool is_within = group_of_[at] != none && group_of_[at] == group_of_[i];
        if (seen[at] || is_within || at < lowest_) continue;
        seen[at] = true;
        open.push_back(at);
      }
    };
    for (const std::size_t member : groups_[g].members) visit_needs(member);
    while (!open.empty()) {
      const std::size_t i = open.back();
      open.pop_back();
      if (group_of_[i] == g) return true;
      if (group_of_[i] == none) {
        visit_needs(i);
      } else {
        for (const std::size_t member : groups_[group_of_[i]].members) visit_needs(member);
      }
    }
    return false;
  }

  // ---- the new equations

  bool goes_inside(Value value, std::size_t g) const {
    const std::size_t* const at = definitions_.find(value);
    if (at == nullptr) return false;
    if (group_of_[*at] == g || ops::splat_of(equations_[*at].op)) return true;
    return equations_[*at].is_view() && goes_inside(equations_[*at].operands[0], g);
  }

  // Whether a value has to be stored: it is yielded, or read by an equation in no group, or by a group without a copy.
  bool is_read(Value value) const {
    if (yielded_.contains(value.id)) return true;
    for (const std::size_t reader : readers_[*definitions_.find(value)]) {
      const std::vector<Value>& operands = equations_[reader].operands;
      if (std::find(operands.begin(), operands.end(), value) == operands.end()) continue;
      const std::size_t g = group_of_[reader];
      if (is_free(reader) ? is_read(equations_[reader].results[0]) : g == none || !goes_inside(value, g)) return true;
    }
    return false;
  }

  void emit() {
    std::vector<Equation> nodes;
    std::vector<std::size_t> place;
    std::vector<bool> stays(equations_.size());
    for (std::size_t i = 0; i < equations_.size(); ++i) {
      stays[i] = group_of_[i] == none && (!is_free(i) || is_read(equations_[i].results[0]));
    }
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      nodes.push_back(make_fused(g));
      place.push_back(*groups_[g].members.rbegin());
    }
    definitions_.remove(equations_);
    for (std::size_t i = 0; i < equations_.size(); ++i) {
      if (!stays[i]) continue;
      nodes.push_back(std::move(equations_[i]));
      place.push_back(i);
    }
    definitions_.add(nodes);
    equations_ = topologically_sorted(std::move(nodes), place, definitions_);
  }

  Equation make_fused(std::size_t g) {
    const RowGroup& group = groups_[g];
    Equation fused{ops::FusedRows{group.length}, {}, {}, equations_[*group.members.begin()].origin, {}};
    Region region;
    inside_.clear();
    for (const std::size_t i : group.members) {
      const Equation& member = equations_[i];
      if (member.op.as<ops::Fused>() == nullptr) {
        add(member, g, region, fused);
      } else {
        const Region& chain = member.regions[0];
        for (std::size_t p = 0; p < chain.params.size(); ++p) {
          inside_[chain.params[p].id] = bring_inside(member.operands[p], g, region, fused);
        }
        for (const Equation& inner : chain.equations) add(inner, g, region, fused);
        for (std::size_t r = 0; r < chain.results.size(); ++r) {
          inside_[member.results[r].id] = inside_.at(chain.results[r].id);
        }
      }
      for (const Value result : member.results) {
        if (!is_read(result)) continue;
        fused.results.push_back(result);
        region.results.push_back(inside_.at(result.id));
      }
    }
    fused.regions.push_back(std::move(region));
    return fused;
  }

  // Adds a copy of an equation, whose results are new values of the region.
  void add(Equation equation, std::size_t g, Region& region, Equation& fused) {
    for (Value& operand : equation.operands) operand = bring_inside(operand, g, region, fused);
    for (Value& result : equation.results) {
      const Value inner = new_value(program_, result);
      inside_[result.id] = inner;
      result = inner;
    }
    region.equations.push_back(std::move(equation));
  }

  Value bring_inside(Value value, std::size_t g, Region& region, Equation& fused) {
    const auto known = inside_.find(value.id);
    if (known != inside_.end()) return known->second;
    if (goes_inside(value, g)) {
      add(equations_[*definitions_.find(value)], g, region, fused);
      return inside_.at(value.id);
    }
    const Value inner = new_value(program_, value);
    fused.operands.push_back(value);
    region.params.push_back(inner);
    return inside_[value.id] = inner;
  }

  Program& program_;
  std::vector<Equation>& equations_;
  Definitions& definitions_;
  std::set<std::int32_t> yielded_;
  std::vector<std::size_t> group_of_;
  std::vector<RowGroup> groups_;
  Lists needs_, needed_by_;  // by equation: the equations that it needs or that need it; free ones are skipped
  Lists readers_;            // by equation: the readers of its results
  std::unordered_map<std::int32_t, std::vector<std::size_t>> sole_readers_;  // by source: equations with one operand
  std::size_t lowest_ = 0;                                                   // no member has a lower index
  std::unordered_map<std::int32_t, Value> inside_;  // by value: its value in the region of the current group
};

bool fuse_rows(Program& program, std::vector<Equation>& equations, std::span<const Value> yielded,
               Definitions& definitions) {
  bool found = false;
  for (Equation& equation : equations) {
    if (!equation.op.is_loop()) continue;
    Region& body = equation.regions[0];
    found |= fuse_rows(program, body.equations, body.results, definitions);
  }
  return RowFuser(program, equations, yielded, definitions).run() || found;
}

}  // namespace

std::optional<Rows> rows_to_fuse(const Program& program, const Equation& equation) {
  // Fewer rows than `few_rows` are fused only up to a length of `longest_of_few`. One block of threads computes a whole
  // row, so a few long rows would leave most of a GPU idle; separate kernels are then faster.
  constexpr std::int64_t longest_of_few = 1024, few_rows = 1024;
  if (equation.operands.size() != 1) return {};
  const Type &from = program.type(equation.operands[0]), &to = program.type(equation.results[0]);
  const std::int64_t rows = numel(to), length = rows == 0 ? 0 : numel(from) / rows;
  const bool is_fit = rows > 1 && length > 1 && ops::reduces_rows(equation.op, from.shape, length);
  if (!is_fit || (length > longest_of_few && rows < few_rows)) return {};
  return Rows{rows, length};
}

Program fuse_rows(Program program) {
  const std::vector<Value> yielded = yielded_by(program);
  Definitions definitions;
  if (fuse_rows(program, program.equations, yielded, definitions)) check(program, "fuse_rows");
  return program;
}

}  // namespace pmaptrain
