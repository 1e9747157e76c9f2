#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "core/graph/check.h"
#include "core/graph/passes.h"

namespace pmaptrain {
namespace {

// By value: what stands for it, often itself.
class Replacements {
 public:
  explicit Replacements(std::size_t values) : by_value_(values) {
    for (std::size_t i = 0; i < values; ++i) by_value_[i] = Value{static_cast<std::int32_t>(i)};
  }
  Value of(Value value) const { return by_value_[static_cast<std::size_t>(value.id)]; }
  void set(Value value, Value other) { by_value_[static_cast<std::size_t>(value.id)] = other; }

 private:
  std::vector<Value> by_value_;
};

void replace(std::vector<Value>& values, const Replacements& replacements) {
  for (Value& value : values) value = replacements.of(value);
}

// Equations of one op with the same operands, by their attributes' text: that is made only where there are two.
struct Alike {
  std::size_t first = 0;  // in the list of what is kept
  std::unordered_map<std::string, std::size_t> by_text = {};
};

// What equal equations have in common, as bytes. Those without operands differ in their attributes alone.
std::string key_of(const Equation& equation) {
  const auto rules = reinterpret_cast<std::uintptr_t>(&equation.op.rules());
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
      replacements.set(equation.results[i], kept[same->second].results[i]);
    }
  }
  equations = std::move(kept);
}

// `used`: by value, whether anything reads it.
void remove_unused(std::vector<Equation>& equations, std::vector<bool>& used) {
  const auto use = [&used](Value value) { used[static_cast<std::size_t>(value.id)] = true; };
  std::vector<Equation> kept;
  for (std::size_t i = equations.size(); i-- > 0;) {
    Equation& equation = equations[i];
    const bool needed = std::any_of(equation.results.begin(), equation.results.end(),
                                    [&](Value result) { return used[static_cast<std::size_t>(result.id)]; });
    if (!needed) continue;
    for (Value operand : equation.operands) use(operand);
    for (Region& region : equation.regions) {
      for (Value result : region.results) use(result);
      remove_unused(region.equations, used);
    }
    kept.push_back(std::move(equation));
  }
  equations.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
}

}  // namespace

Program simplify(const Program& program) {
  Program result = program;
  Replacements replacements(result.types.size());
  share_equal(result.equations, replacements);
  std::vector<bool> used(result.types.size());
  for (Output& output : result.outputs) {
    output.value = replacements.of(output.value);
    used[static_cast<std::size_t>(output.value.id)] = true;
  }
  for (Input& input : result.inputs) {
    if (!input.next) continue;
    input.next = replacements.of(*input.next);
    used[static_cast<std::size_t>(input.next->id)] = true;
  }
  remove_unused(result.equations, used);
  check(result, "simplify");
  return result;
}

}  // namespace pmaptrain
