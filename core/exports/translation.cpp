#include "core/exports/translation.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/ops/list.h"

namespace pmaptrain::exports {

namespace {

// The permutation that puts the channels, which are last, behind the examples, or back to the end.
std::vector<std::int64_t> channels_to(const Type& type, bool first) {
  std::vector<std::int64_t> order(type.shape.size());
  std::iota(order.begin(), order.end(), 0);
  if (first) {
    std::rotate(order.begin() + 1, order.end() - 1, order.end());
  } else {
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  }
  return order;
}

}  // namespace

const Known* Translation::known(Value value) const {
  const auto& found = values_.at(value.id).known;
  return found ? &*found : nullptr;
}

bool Translation::is_there(Value value, bool channels_first) const {
  const GraphValue& found = values_.at(value.id);
  return channels_first ? !found.channels_first.empty() : !found.name.empty();
}

std::string Translation::name(Value value) {
  GraphValue& found = values_.at(value.id);
  if (!found.name.empty()) return found.name;
  if (!found.known) {
    return found.name = graph_->node("Transpose", {found.channels_first}, {{"perm", channels_to(type(value), false)}});
  }
  const Known& known = *found.known;
  std::string made = initializer(known, type(value).shape);
  const std::size_t rank = known.type.shape.size();
  for (std::size_t d = 0; d < rank; ++d) {
    const bool is_repeated = known.type.shape[d] != type(value).shape[d];
    if (is_length(value, d) && !is_repeated) made = up_to_length(std::move(made), static_cast<std::int64_t>(rank - d));
  }
  return found.name = std::move(made);
}

// What an array of the longest sequences has for one of any length.
std::string Translation::up_to_length(std::string longest, std::int64_t dim_from_end) {
  if (length_.empty()) {
    const std::string inputs = name(program_->inputs.back().value);
    length_ = graph_->node("Shape", {inputs}, {{"start", std::int64_t{1}}, {"end", std::int64_t{2}}});
  }
  const std::string zero = graph_->integers({0}), axis = graph_->integers({-dim_from_end});
  return graph_->node("Slice", {std::move(longest), zero, length_, axis});
}

std::string Translation::causal_mask(Value value, std::size_t dim) {
  const std::int64_t positions = type(value).shape[dim];
  std::string& mask = masks_[positions];
  if (!mask.empty()) return mask;
  std::vector<double> numbers;
  for (std::int64_t t = 0; t < positions; ++t) {
    for (std::int64_t s = 0; s < positions; ++s) {
      numbers.push_back(s <= t ? 0.0 : static_cast<double>(std::numeric_limits<float>::lowest()));
    }
  }
  mask = graph_->numbers(numbers, {positions, positions});
  if (is_length(value, dim)) mask = up_to_length(up_to_length(mask, 1), 2);
  return mask;
}

bool Translation::is_length(Value value, std::size_t dim) const {
  return !lengths_.empty() && lengths_[static_cast<std::size_t>(value.id)][dim];
}

Shape Translation::open_shape(Value value) const {
  Shape shape = type(value).shape;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (is_length(value, d)) shape[d] = onnx::any_length;
  }
  return shape;
}

std::string Translation::kernel(Value value) {
  const Type& from = type(value);
  const std::int64_t rank = std::ssize(from.shape);
  std::vector<std::int64_t> order{rank - 1, rank - 2};
  for (std::int64_t d = 0; d + 2 < rank; ++d) order.push_back(d);
  Type to{from.dtype, {}, {}};
  for (const std::int64_t d : order) to.shape.push_back(from.shape[static_cast<std::size_t>(d)]);
  return initializer(folded(ops::Transpose{order}, {known(value), 1}, {&from, 1}, to), to.shape);
}

std::string Translation::initializer(Known known, const Shape& shape) {
  // A parameter "conv_0.kernel" is "kernel" in the scope of its layer.
  if (known.name.starts_with(scope_ + ".")) known.name.erase(0, scope_.size() + 1);
  const bool whole = known.type.shape == shape;
  return add_initializer(*graph_, known, whole);
}

std::string Translation::image(Value value) {
  GraphValue& found = values_.at(value.id);
  if (found.channels_first.empty()) {
    const std::string last = name(value);
    found.channels_first = graph_->node("Transpose", {last}, {{"perm", channels_to(type(value), true)}});
  }
  return found.channels_first;
}

void Translation::set(Value value, std::string name, bool channels_first) {
  GraphValue& made = values_[value.id];
  (channels_first ? made.channels_first : made.name) = std::move(name);
}

void Translation::elementwise(Value result, std::span<const Value> operands, const std::string& op,
                              onnx::Attributes attributes) {
  // Channels first if all operands are there so; else if any is an image, and no known array had to be transposed.
  const auto all = [&](bool first) {
    return std::all_of(operands.begin(), operands.end(), [&](Value value) {
      return known(value) != nullptr ? !first || type(value).shape.empty() : is_there(value, first);
    });
  };
  const auto is_image = [&](Value value) { return is_there(value, true); };
  const auto is_array = [&](Value value) { return known(value) != nullptr && !type(value).shape.empty(); };
  const bool first = all(true) || (!all(false) && std::any_of(operands.begin(), operands.end(), is_image) &&
                                   std::none_of(operands.begin(), operands.end(), is_array));
  std::vector<std::string> inputs;
  for (const Value operand : operands) {
    inputs.push_back(first && known(operand) == nullptr ? image(operand) : name(operand));
  }
  set(result, graph_->node(op, std::move(inputs), std::move(attributes)), first);
}

bool Translation::fold(const Equation& equation) {
  if (equation.results.size() != 1) return false;
  std::vector<Known> values;
  for (const Value operand : equation.operands) {
    const Known* const value = known(operand);
    if (value == nullptr) return false;
    values.push_back(*value);
  }
  const std::vector<Type> types = types_of(*program_, equation.operands);
  const Value result = equation.results.front();
  values_[result.id].known = folded(equation.op, values, types, type(result));
  return true;
}

void Translation::append(const Equation& equation) {
  if (is_part_[next_]) {
    ++next_;
    return;
  }
  scope_ = equation.origin->scope;
  graph_->name_after(prefix_ + scope_);
  if (const std::size_t matched = append_pattern(*this, next_); matched > 0) {
    next_ += matched;
    return;
  }
  if (!fold(equation)) append_op(*this, equation);
  ++next_;
}

void Translation::run_scope(std::string_view only) {
  while (next_ < program_->equations.size()) {
    const Equation& equation = program_->equations[next_];
    const auto is_bound = [&](Value operand) { return has(operand); };
    if (equation.origin->scope != only) return;
    if (!std::all_of(equation.operands.begin(), equation.operands.end(), is_bound)) return;
    append(equation);
  }
}

void Translation::run(const std::string& prefix) {
  prefix_ = prefix;
  while (next_ < program_->equations.size()) append(program_->equations[next_]);
}

}  // namespace pmaptrain::exports
