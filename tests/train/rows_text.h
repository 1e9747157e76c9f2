// Rows of numbers as a config has them.
#pragma once

#include <string>
#include <vector>

#include "core/base/text.h"

namespace pmaptrain::testing {

using Rows = std::vector<std::vector<double>>;

// "[[1, 2], [3, 4]]", with enough digits to read the numbers back exactly.
inline std::string rows_text(const Rows& rows) {
  std::string text;
  for (const std::vector<double>& row : rows) {
    std::string items;
    for (const double value : row) items += (items.empty() ? "" : ", ") + exact(value);
    text += (text.empty() ? "[" : ", [") + items + "]";
  }
  return "[" + text + "]";
}

}  // namespace pmaptrain::testing
