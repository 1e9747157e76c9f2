// Decides the order of parameters in memory. Parameters that are updated by the same rule are contiguous; their state
// and gradients have the same order. Then the update takes one launch for each rule.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/runtime/gpu/lowering.h"

namespace pmaptrain::gpu {
namespace {

// An elementwise chain that computes new values of inputs.
struct Update {
  const Equation* equation = nullptr;
  std::vector<Value> inputs;  // inputs that get new values
  std::size_t rule = 0;       // equal for chains that differ only in their arrays
  std::size_t ready = 0;      // the equation after which all of its gradients are available
};

class Updates {
 public:
  explicit Updates(const Program& program) : program_(program) {
    std::unordered_map<std::int32_t, Value> replaced;
    for (const Input& input : program.inputs) {
      if (input.next) replaced.emplace(input.next->id, input.value);
    }
    for (std::size_t i = 0; i < program.equations.size(); ++i) {
      const Equation& equation = program.equations[i];
      for (const Value result : equation.results) defined_.emplace(result.id, i);
      if (equation.regions.empty() || !equation.op.rules().elementwise) continue;
      Update update{&equation, {}, {}, 0};
      for (const Value result : equation.results) {
        if (const auto found = replaced.find(result.id); found != replaced.end())
          update.inputs.push_back(found->second);
      }
      if (!update.inputs.empty()) all_.push_back(std::move(update));
    }
    find_rules();
    for (Update& update : all_) find_gradients(update);
  }

  // By value: the number of the update that replaces an input or is the only reader of a gradient; -1 for other values.
  std::vector<int> places() {
    std::map<std::size_t, std::size_t> last;  // by rule
    for (const Update& update : all_) last[update.rule] = std::max(last[update.rule], update.ready);
    std::stable_sort(all_.begin(), all_.end(), [&](const Update& a, const Update& b) {
      return std::tuple(last[a.rule], a.rule, a.ready) < std::tuple(last[b.rule], b.rule, b.ready);
    });
    std::vector<int> places(program_.types.size(), -1);
    std::set<std::int32_t> read;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      for (const Value input : all_[i].inputs) places[static_cast<std::size_t>(input.id)] = static_cast<int>(i);
      for (const Value operand : all_[i].equation->operands) {
        if (gradient_of(operand) == nullptr) continue;
        const bool is_first = read.insert(operand.id).second;
        places[static_cast<std::size_t>(operand.id)] = is_first ? static_cast<int>(i) : -1;
      }
    }
    return places;
  }

 private:
  const Equation* definition(Value value) const {
    const auto found = defined_.find(value.id);
    return found == defined_.end() ? nullptr : &program_.equations[found->second];
  }

  // The addend of a sum over devices that results in `value`; null if `value` is no such sum.
  const Value* gradient_of(Value value) const {
    const Equation* const sum = definition(value);
    if (sum == nullptr || sum->op.rules().communication != Communication::sum) return nullptr;
    const auto result = std::find(sum->results.begin(), sum->results.end(), value);
    return &sum->operands[static_cast<std::size_t>(result - sum->results.begin())];
  }

  // A rule is a chain's text together with its scalar operands. Array operands have as many elements as the result.
  // This cannot be decided from a chain on one element, so other chains of the same text decide.
  void find_rules() {
    std::vector<std::string> texts;
    std::map<std::string, std::vector<bool>> arrays;  // by text and number of the operand
    for (const Update& update : all_) {
      const Equation& equation = *update.equation;
      std::vector<bool>& known = arrays[texts.emplace_back(text_of(program_, equation.regions.front()))];
      known.resize(equation.operands.size());
      const std::int64_t elements = numel(program_.type(equation.results.front()));
      for (std::size_t i = 0; i < known.size() && elements != 1; ++i) {
        if (numel(program_.type(equation.operands[i])) == elements) known[i] = true;
      }
    }
    std::map<std::pair<std::string, std::vector<Value>>, std::size_t> rules;
    for (std::size_t u = 0; u < all_.size(); ++u) {
      const std::vector<bool>& known = arrays.at(texts[u]);
      std::vector<Value> shared;
      for (std::size_t i = 0; i < known.size(); ++i) {
        if (!known[i]) shared.push_back(all_[u].equation->operands[i]);
      }
      all_[u].rule = rules.try_emplace({texts[u], std::move(shared)}, rules.size()).first->second;
    }
  }

  void find_gradients(Update& update) const {
    for (const Value operand : update.equation->operands) {
      const Value* const gradient = gradient_of(operand);
      const auto found = defined_.find(gradient == nullptr ? -1 : gradient->id);
      if (found != defined_.end()) update.ready = std::max(update.ready, found->second);
    }
  }

  const Program& program_;
  std::unordered_map<std::int32_t, std::size_t> defined_;  // by value: index of its equation
  std::vector<Update> all_;
};

}  // namespace

std::string text_of(const Program& program, const Region& region) {
  std::string text;
  std::map<int, std::size_t> numbers;
  const auto define = [&](Value value) {
    numbers.emplace(value.id, numbers.size());
    text += std::string(to_string(program.type(value).dtype)) + ' ';
  };
  const auto read = [&](Value value) { text += std::to_string(numbers.at(value.id)) + ' '; };
  for (const Value param : region.params) define(param);
  for (const Equation& equation : region.equations) {
    append_key(equation.op, text);
    for (const Value operand : equation.operands) read(operand);
    for (const Value result : equation.results) define(result);
  }
  for (const Value result : region.results) read(result);
  return text;
}

std::vector<int> places_of_updates(const Program& program) { return Updates(program).places(); }

std::vector<const Input*> Lowering::inputs_in_order() const {
  // The parameters form one run of inputs, as does each kind of state. A new run begins when an update appears twice.
  std::vector<const Input*> order;
  std::set<int> seen;
  std::size_t first = 0;
  const auto sort_run = [&] {
    std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(first), order.end(),
                     [&](const Input* a, const Input* b) { return place_of(a->value) < place_of(b->value); });
    first = order.size();
    seen.clear();
  };
  for (const Input& input : program_.inputs) {
    const int place = place_of(input.value);
    const bool is_other = !order.empty() && order.back()->group != input.group;
    if (is_other || (place >= 0 && seen.contains(place))) sort_run();
    seen.insert(place);
    order.push_back(&input);
  }
  sort_run();
  return order;
}

std::vector<std::size_t> Lowering::in_order(const std::vector<Value>& values) const {
  std::vector<std::size_t> order(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return place_of(values[a]) < place_of(values[b]); });
  return order;
}

}  // namespace pmaptrain::gpu
