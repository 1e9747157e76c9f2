#include "core/passes/fuse_columns.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/graph/check.h"
#include "core/ops/fused/fused.h"
#include "core/ops/fused_columns/fused_columns.h"
#include "core/ops/reshape/reshape.h"
#include "core/passes/chains.h"
#include "core/passes/lists.h"
#include "core/passes/slice.h"
#include "core/passes/uses.h"

namespace pmaptrain {
namespace {

// A GPU sums fewer rows in one launch, without parts in memory, so there is less to gain.
constexpr std::int64_t least_rows = 257;

// Sums of values of one chain, which become one equation.
struct ColumnSums {
  std::size_t chain = 0;  // the equation that gives the values
  ops::Matrix matrix;
  std::vector<std::size_t> members;  // the sums, ascending
  std::size_t first_reader = 0;      // the first equation that reads one of them
};

class ColumnFuser {
 public:
  ColumnFuser(Program& program, std::vector<Equation>& equations, std::span<const Value> yielded,
              Definitions& definitions)
      : program_(program),
        equations_(equations),
        yielded_(yielded),
        definitions_(definitions),
        readers_(program.types.size()) {
    definitions_.add(equations_);
    for (std::size_t i = 0; i < equations_.size(); ++i) {
      for (const Value operand : equations_[i].operands) readers_.add(at(operand), i);
    }
    for (const Value value : yielded) readers_.add(at(value), end);
  }

  bool run() {
    std::vector<std::size_t> fused;  // the new equations
    for (const ColumnSums& sums : find_sums()) {
      if (fuse(sums)) fused.push_back(sums.members.back());
    }
    if (fused.empty()) return false;
    for (const std::size_t i : fused) {
      while (take_reader(i)) continue;
    }
    remove_unread();
    definitions_.remove(equations_);
    std::erase_if(equations_, [](const Equation& equation) { return equation.results.empty(); });
    definitions_.add(equations_);
    return true;
  }

 private:
  static constexpr std::size_t end = static_cast<std::size_t>(-1);  // whoever reads a yielded value

  static std::size_t at(Value value) { return static_cast<std::size_t>(value.id); }
  const Type& type(Value value) const { return program_.type(value); }
  std::int64_t size(Value value) const { return static_cast<std::int64_t>(bytes(type(value))); }
  std::int64_t size(const std::vector<Value>& values) const {
    std::int64_t sum = 0;
    for (const Value value : values) sum += size(value);
    return sum;
  }

  // ---- which sums become one equation

  // The value before reshapes.
  Value source(Value value) const {
    for (const std::size_t* found = definitions_.find(value);
         found != nullptr && equations_[*found].op.as<ops::Reshape>() != nullptr; found = definitions_.find(value)) {
      value = equations_[*found].operands[0];
    }
    return value;
  }

  std::vector<ColumnSums> find_sums() const {
    std::vector<ColumnSums> all;
    for (std::size_t i = 0; i < equations_.size(); ++i) {
      const auto* const sum = equations_[i].op.as<ops::ReduceSum>();
      if (sum == nullptr) continue;
      const Value operand = equations_[i].operands[0];
      const std::optional<ops::Matrix> matrix = ops::matrix_of(*sum, type(operand).shape);
      const std::size_t* const chain = definitions_.find(source(operand));
      if (!matrix || matrix->rows < least_rows || chain == nullptr || !is_chain(equations_[*chain])) continue;
      // The fused equation stands at the place of its last sum, so no other may have been read before.
      auto open = std::find_if(all.begin(), all.end(), [&](const ColumnSums& sums) {
        return sums.chain == *chain && sums.matrix == *matrix && sums.first_reader > i &&
               sums.members.size() < ops::most_column_sums;
      });
      if (open == all.end()) open = all.insert(all.end(), {*chain, *matrix, {}, end});
      open->members.push_back(i);
      for (const std::size_t reader : readers_[at(equations_[i].results[0])]) {
        open->first_reader = std::min(open->first_reader, reader);
      }
    }
    return all;
  }

  // Whether nothing but the members reads a value, directly or through reshapes.
  bool only_summed(Value value, const ColumnSums& sums) const {
    const auto is_summed = [&](std::size_t reader) {
      if (reader == end) return false;
      if (std::binary_search(sums.members.begin(), sums.members.end(), reader)) return true;
      const Equation& view = equations_[reader];
      return view.op.as<ops::Reshape>() != nullptr && !view.results.empty() && only_summed(view.results[0], sums);
    };
    const Lists::List readers = readers_[at(value)];
    return std::all_of(readers.begin(), readers.end(), is_summed);
  }

  // ---- what is computed where

  bool fuse(const ColumnSums& sums) {
    const Equation chain = equations_[sums.chain];
    const Region region = region_of(chain);
    std::vector<Value> kept, summed;  // of the region's results: what others read, and what the members sum
    const Outside params = outside_of(chain, region);
    Outside stored = params;  // and what others read
    for (std::size_t i = 0; i < chain.results.size(); ++i) {
      if (!only_summed(chain.results[i], sums)) {
        kept.push_back(region.results[i]);
        stored[region.results[i].id] = chain.results[i];
      }
      for (const std::size_t member : sums.members) {
        if (source(equations_[member].operands[0]) != chain.results[i]) continue;
        summed.push_back(region.results[i]);
        break;
      }
    }
    const auto read = [&](const Slice& slice, const Outside& from) {
      std::int64_t sum = 0;
      for (const Value value : slice.reads) sum += size(from.at(value.id));
      return sum;
    };
    const Slice rest = slice_of(region, kept, params);
    const Slice anew = slice_of(region, summed, params), loaded = slice_of(region, summed, stored);
    const bool loads = read(loaded, stored) < read(anew, params);
    const Slice& slice = loads ? loaded : anew;
    std::int64_t before = size(chain.results), after = read(slice, stored) + read(rest, params);
    for (const Value operand : region.params) before += size(params.at(operand.id));
    for (const Value value : kept) after += size(stored.at(value.id));
    for (const std::size_t member : sums.members) before += size(equations_[member].operands[0]);
    const bool has_elements = std::any_of(slice.reads.begin(), slice.reads.end(), [&](Value value) {
      return numel(type(stored.at(value.id))) == sums.matrix.elements();
    });
    if (after >= before || !has_elements || (rest.reads.empty() && !kept.empty())) return false;

    const std::size_t place = sums.members.back();
    Equation made = make_fused(sums, chain, region, slice, stored);
    for (const std::size_t member : sums.members) equations_[member].results.clear();
    for (const Value operand : made.operands) readers_.add(at(operand), place);
    equations_[place] = std::move(made);
    // The chain without what nothing but the sums has read.
    if (kept.empty()) equations_[sums.chain].results.clear();
    if (!kept.empty() && kept.size() < chain.results.size()) {
      equations_[sums.chain] = part_of_chain(program_, chain, kept, params);
    }
    return true;
  }

  Equation make_fused(const ColumnSums& sums, const Equation& chain, const Region& region, const Slice& slice,
                      const Outside& outside) {
    Equation fused{ops::FusedColumns{}, {}, {}, equations_[sums.members[0]].origin, {}};
    Region made;
    Outside inside = copy_slice(program_, region, slice, outside, fused, made);
    const auto add = [&](Equation equation, Value operand) {
      equation.operands = {operand};
      equation.results = {new_value(program_, equation.results[0])};
      made.equations.push_back(std::move(equation));
      return made.equations.back().results[0];
    };
    for (std::size_t i = 0; i < chain.results.size(); ++i) {
      const auto found = inside.find(region.results[i].id);
      if (found != inside.end()) inside[chain.results[i].id] = found->second;
    }
    for (const std::size_t member : sums.members) {
      std::vector<std::size_t> views;
      Value value = equations_[member].operands[0];
      for (; value != source(value); value = equations_[views.back()].operands[0]) {
        views.push_back(*definitions_.find(value));
      }
      Value element = inside.at(value.id);
      for (; !views.empty(); views.pop_back()) element = add(equations_[views.back()], element);
      fused.results.push_back(equations_[member].results[0]);
      made.results.push_back(add(equations_[member], element));
    }
    fused.regions.push_back(std::move(made));
    return fused;
  }

  // ---- what is made of sums

  // Puts one chain that reads results of a fused equation inside of it, if all else that the chain reads is there
  // before. Returns false if there is none.
  bool take_reader(std::size_t i) {
    const Equation& sums = equations_[i];
    const std::int64_t columns = numel(type(sums.results[0]));
    for (const Value result : sums.results) {
      for (const std::size_t reader : readers_[at(result)]) {
        if (reader == end || reader <= i || equations_[reader].results.empty()) continue;
        const Equation& chain = equations_[reader];
        const auto is_before = [&](Value operand) {
          const std::size_t* const found = definitions_.find(operand);
          const bool is_own = std::find(sums.results.begin(), sums.results.end(), operand) != sums.results.end();
          return found == nullptr || *found < i || is_own;
        };
        if (!is_of_columns(program_, chain, columns) ||
            !std::all_of(chain.operands.begin(), chain.operands.end(), is_before)) {
          continue;
        }
        take(i, reader);
        return true;
      }
    }
    return false;
  }

  void take(std::size_t i, std::size_t reader) {
    Equation& sums = equations_[i];
    const Equation chain = equations_[reader];
    equations_[reader].results.clear();
    const Region region = region_of(chain);
    Region& body = sums.regions[0];
    Outside inside;  // by value of the chain's region
    const Outside outside = outside_of(chain, region);
    for (const Value param : region.params) {
      const Value operand = outside.at(param.id);
      const auto result = std::find(sums.results.begin(), sums.results.end(), operand) - sums.results.begin();
      const auto known = std::find(sums.operands.begin(), sums.operands.end(), operand) - sums.operands.begin();
      if (result < std::ssize(sums.results)) {
        inside[param.id] = body.results[static_cast<std::size_t>(result)];
      } else if (known < std::ssize(sums.operands)) {
        inside[param.id] = body.params[static_cast<std::size_t>(known)];
      } else {
        sums.operands.push_back(operand);
        body.params.push_back(inside[param.id] = new_value(program_, param));
        readers_.add(at(operand), i);
      }
    }
    for (Equation inner : region.equations) {
      for (Value& operand : inner.operands) operand = inside.at(operand.id);
      const Value result = inner.results[0];
      inner.results = {inside[result.id] = new_value(program_, result)};
      body.equations.push_back(std::move(inner));
    }
    for (std::size_t r = 0; r < chain.results.size(); ++r) {
      sums.results.push_back(chain.results[r]);
      body.results.push_back(inside.at(region.results[r].id));
      definitions_.set(chain.results[r], i);
    }
  }

  // Reshapes between a chain and its sums, and sums that only chains inside have read, are not read any more.
  void remove_unread() {
    std::unordered_set<std::int32_t> read;
    for (const Value value : yielded_) read.insert(value.id);
    for (std::size_t i = equations_.size(); i-- > 0;) {
      Equation& equation = equations_[i];
      const bool is_view = equation.op.as<ops::Reshape>() != nullptr;
      if (is_view && !equation.results.empty() && !read.contains(equation.results[0].id)) equation.results.clear();
      if (equation.op.as<ops::FusedColumns>() != nullptr) {
        for (std::size_t r = equation.results.size(); r-- > 0 && equation.results.size() > 1;) {
          if (read.contains(equation.results[r].id)) continue;
          equation.results.erase(equation.results.begin() + static_cast<std::ptrdiff_t>(r));
          std::vector<Value>& yields = equation.regions[0].results;
          yields.erase(yields.begin() + static_cast<std::ptrdiff_t>(r));
        }
      }
      if (equation.results.empty()) continue;
      for (const Value operand : equation.operands) read.insert(operand.id);
    }
  }

  Program& program_;
  std::vector<Equation>& equations_;
  const std::span<const Value> yielded_;
  Definitions& definitions_;
  Lists readers_;  // by value: the equations that read it
};

bool fuse_columns(Program& program, std::vector<Equation>& equations, std::span<const Value> yielded,
                  Definitions& definitions) {
  bool found = false;
  for (Equation& equation : equations) {
    if (!equation.op.is_loop()) continue;
    Region& body = equation.regions[0];
    found |= fuse_columns(program, body.equations, body.results, definitions);
  }
  return ColumnFuser(program, equations, yielded, definitions).run() || found;
}

}  // namespace

Program fuse_columns(Program program) {
  const std::vector<Value> yielded = yielded_by(program);
  Definitions definitions;
  if (fuse_columns(program, program.equations, yielded, definitions)) check(program, "fuse_columns");
  return program;
}

}  // namespace pmaptrain
