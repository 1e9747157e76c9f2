// What messages say of a cell that is not what its column takes.
#pragma once

#include <string>
#include <string_view>

#include "core/data/tables/csv_reader.h"
#include "core/data/tables/csv_source.h"

namespace pmaptrain::data {

inline constexpr const char* skip_help = "on_error: skip leaves out a few rows that cannot be read";

struct CellFault {
  std::string what, help;
};

// Of a cell that is no number, in the input `column`. `new_rows`: of rows for a trained model.
CellFault input_fault(const CellNumber& number, std::string_view cell, const std::string& column, const Csv& csv,
                      bool new_rows);
// Of an infinite number, and one that float32 does not hold.
CellFault large_fault(std::string_view cell);
// Of a number with signs: "$1,234".
CellFault formatted_fault(std::string_view cell);
// Of an empty cell, or one with a word for that, in a column of categories.
CellFault missing_category_fault(std::string_view cell);
// Of a target that is no number. `several`: one of several targets; `labels`: that are labels.
CellFault target_fault(const CellNumber& number, std::string_view cell, bool several, bool labels);
// Of an empty target.
CellFault empty_target_fault(bool has_texts);

}  // namespace pmaptrain::data
