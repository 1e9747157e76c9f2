// Which columns of a table are to be predicted, and what they are.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/input/inspect.h"
#include "core/input/table_column.h"

namespace pmaptrain::input {

// The columns to predict, by their number: those that are `chosen`, or one that is guessed. Says in `layout` what they
// are. Throws Error (data) for what cannot be predicted.
std::vector<std::size_t> find_targets(const std::vector<Column>& columns, const std::vector<std::string>& chosen,
                                      const std::string& path, std::size_t rows, TableLayout& layout);

}  // namespace pmaptrain::input
