#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/graph/check.h"
#include "core/graph/passes.h"

namespace pmaptrain {
namespace {

// By value: its replacement, which is often the value itself.
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

// Places in a list of equations, found by what equal equations have in common: their op and their operands.
class Seen {
 public:
  explicit Seen(const std::vector<Equation>& equations)
      : equations_(equations), slots_(std::bit_ceil(2 * equations.size() + 1)) {}

  // The index of the first added equation that equals the one at `place`; `place` itself if there is none.
  std::size_t find_or_add(std::size_t place) {
    make_key(place, key_);
    const auto hash = static_cast<std::uint32_t>(std::hash<std::string_view>{}(key_));
    for (std::size_t i = hash;; ++i) {
      Slot& slot = slots_[i & (slots_.size() - 1)];
      if (slot.place == none) {
        slot = {hash, static_cast<std::uint32_t>(place)};
        return place;
      }
      if (slot.hash != hash) continue;
      make_key(slot.place, other_);
      if (key_ == other_) return slot.place;
    }
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct Slot {
    std::uint32_t hash = 0, place = none;
  };

  void make_key(std::size_t place, std::string& key) const {
    key.clear();
    append_key(equations_[place].op, key);
    for (Value operand : equations_[place].operands) {
      key.append(reinterpret_cast<const char*>(&operand.id), sizeof operand.id);
    }
  }

  const std::vector<Equation>& equations_;
  std::vector<Slot> slots_;  // open addressing: at least every other one is free
  std::string key_, other_;
};

// The first of equal equations (same op, same attributes, same operands) of each region takes the place of the others,
// which keep no results.
void share_equal(std::vector<Equation>& equations, Replacements& replacements) {
  Seen seen(equations);
  for (std::size_t i = 0; i < equations.size(); ++i) {
    Equation& equation = equations[i];
    replace(equation.operands, replacements);
    for (Region& region : equation.regions) {
      share_equal(region.equations, replacements);
      replace(region.results, replacements);
    }
    if (!equation.regions.empty()) continue;
    const std::size_t first = seen.find_or_add(i);
    if (first == i) continue;
    for (std::size_t k = 0; k < equation.results.size(); ++k) {
      replacements.set(equation.results[k], equations[first].results[k]);
    }
    equation.results.clear();
  }
}

// `used`: by value, whether anything reads it.
void remove_unused(std::vector<Equation>& equations, std::vector<bool>& used) {
  const auto is_used = [&used](Value value) { return used[static_cast<std::size_t>(value.id)]; };
  const auto use = [&used](Value value) { used[static_cast<std::size_t>(value.id)] = true; };
  for (std::size_t i = equations.size(); i-- > 0;) {
    Equation& equation = equations[i];
    if (std::none_of(equation.results.begin(), equation.results.end(), is_used)) {
      equation.results.clear();
      continue;
    }
    for (Value operand : equation.operands) use(operand);
    for (Region& region : equation.regions) {
      for (Value result : region.results) use(result);
      remove_unused(region.equations, used);
    }
  }
  std::erase_if(equations, [](const Equation& equation) { return equation.results.empty(); });
}

}  // namespace

Program simplify(Program program) {
  Replacements replacements(program.types.size());
  share_equal(program.equations, replacements);
  std::vector<bool> used(program.types.size());
  for (Output& output : program.outputs) {
    output.value = replacements.of(output.value);
    used[static_cast<std::size_t>(output.value.id)] = true;
  }
  for (Input& input : program.inputs) {
    if (!input.next) continue;
    input.next = replacements.of(*input.next);
    used[static_cast<std::size_t>(input.next->id)] = true;
  }
  remove_unused(program.equations, used);
  check(program, "simplify");
  return program;
}

}  // namespace pmaptrain
