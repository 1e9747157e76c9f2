// Types of values for code that looks at every equation of a program.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/graph/program.h"

namespace pmaptrain {

// Lists the types of values one after another, in memory that the next call uses again.
class TypeList {
 public:
  std::span<const Type> of(const Program& program, std::span<const Value> values) {
    types_.resize(std::max(types_.size(), values.size()));
    for (std::size_t i = 0; i < values.size(); ++i) types_[i] = program.type(values[i]);
    return std::span(types_).first(values.size());
  }

 private:
  std::vector<Type> types_;
};

}  // namespace pmaptrain
