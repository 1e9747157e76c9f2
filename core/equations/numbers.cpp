#include "core/equations/numbers.h"

#include <cassert>

namespace pmaptrain::equations {

std::vector<Value> declare_numbers(Builder& b, std::span<const Number> numbers) {
  std::vector<Value> values;
  values.reserve(numbers.size());
  for (const Number& number : numbers) values.push_back(b.input(Group::hyper, number.name, {number.dtype, {}, {}}));
  return values;
}

Numbers::Numbers(std::span<const Number> numbers, std::span<const Value> values) {
  assert(numbers.size() == values.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    [[maybe_unused]] const bool is_new = values_.emplace(numbers[i].name, values[i]).second;
    assert(is_new);
  }
}

}  // namespace pmaptrain::equations
