#include <unordered_map>
#include <unordered_set>

#include "core/graph/check.h"
#include "core/graph/passes.h"

namespace pmaptrain {
namespace {

using Replacements = std::unordered_map<std::int32_t, Value>;

void replace(std::vector<Value>& values, const Replacements& replacements) {
  for (Value& value : values) {
    const auto found = replacements.find(value.id);
    if (found != replacements.end()) value = found->second;
  }
}

// Equations of one op with the same operands, by their attributes' text: that is made only where there are two.
struct Alike {
  std::size_t first = 0;  // in the list of what is kept
  std::unordered_map<std::string, std::size_t> by_text = {};
};

// What equal equations have in common, as bytes. Those without operands differ in their attributes alone.
std::string key_of(const Equation& equation) {
  const OpRules* const rules = &equation.op.rules();
  std::string key(reinterpret_cast<const char*>(&rules), sizeof rules);
  for (Value operand : equation.operands) key.append(reinterpret_cast<const char*>(&operand.id), sizeof operand.id);
  return equation.operands.empty() ? key + to_string(equation.op) : key;
}

// Keeps the first of equal equations (same op, same attributes, same operands) of each region.
void share_equal(std::vector<Equation>& equations, Replacements& replacements) {
  std::unordered_map<std::string, Alike> seen;
  std::vector<Equation> kept;
  kept.reserve(equations.size());
  for (Equation& equation : equations) {
    replace(equation.operands, replacements);
    if (!equation.regions.empty()) {
      for (Region& region : equation.regions) {
        share_equal(region.equations, replacements);
        replace(region.results, replacements);
      }
      kept.push_back(std::move(equation));
      continue;
    }
    const auto [entry, is_new] = seen.try_emplace(key_of(equation), Alike{kept.size()});
    if (is_new) {
      kept.push_back(std::move(equation));
      continue;
    }
    Alike& alike = entry->second;
    if (alike.by_text.empty()) alike.by_text[to_string(kept[alike.first].op)] = alike.first;
    const auto [same, differs] = alike.by_text.try_emplace(to_string(equation.op), kept.size());
    if (differs) {
      kept.push_back(std::move(equation));
      continue;
    }
    for (std::size_t i = 0; i < equation.results.size(); ++i) {
      replacements[equation.results[i].id] = kept[same->second].results[i];
    }
  }
  equations = std::move(kept);
}

void remove_unused(std::vector<Equation>& equations, std::unordered_set<std::int32_t>& used) {
  std::vector<Equation> kept;
  for (std::size_t i = equations.size(); i-- > 0;) {
    Equation& equation = equations[i];
    bool needed = false;
    for (Value result : equation.results) needed |= used.contains(result.id);
    if (!needed) continue;
    for (Value operand : equation.operands) used.insert(operand.id);
    for (Region& region : equation.regions) {
      std::unordered_set<std::int32_t> inside;
      for (Value result : region.results) inside.insert(result.id);
      remove_unused(region.equations, inside);
    }
    kept.push_back(std::move(equation));
  }
  equations.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
}

}  // namespace

Program simplify(const Program& program) {
  Program result = program;
  Replacements replacements;
  share_equal(result.equations, replacements);
  std::unordered_set<std::int32_t> used;
  for (Output& output : result.outputs) {
    const auto found = replacements.find(output.value.id);
    if (found != replacements.end()) output.value = found->second;
    used.insert(output.value.id);
  }
  for (Input& input : result.inputs) {
    if (!input.next) continue;
    const auto found = replacements.find(input.next->id);
    if (found != replacements.end()) input.next = found->second;
    used.insert(input.next->id);
  }
  remove_unused(result.equations, used);
  check(result, "simplify");
  return result;
}

}  // namespace pmaptrain
