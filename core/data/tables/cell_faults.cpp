#include "core/data/tables/cell_faults.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/json.h"
#include "core/data/tables/dates.h"

namespace pmaptrain::data {
namespace {

bool is_decimal_comma(std::string_view cell) {
  std::string with_point(cell);
  std::erase(with_point, '.');
  std::replace(with_point.begin(), with_point.end(), ',', '.');
  return cell.find(',') != std::string_view::npos && to_number(with_point).kind == CellNumber::Kind::number;
}

// What a text may be in a column of numbers. Of new rows for a trained model, only a missing number.
std::string help_on_text(const Csv& csv, const std::string& column, std::string_view cell, bool new_rows) {
  constexpr std::size_t longest_token = 12;  // that may say that a number is missing
  const bool takes_missing = csv.missing.of(column, false) == Missing::mean;
  std::string values;  // those that the config has mean the same on
  for (const ColumnName& value : csv.missing_values) values += json_string(value.text) + ", ";
  values = fmt::format("missing_values: [{}{}]", values, json_string(without_blanks(cell)));
  if (new_rows) {
    if (takes_missing) return fmt::format("if it says that the number is missing: {}", values);
    return "write a number: the run was trained without missing ones";
  }
  return fmt::format("if '{0}' has categories, list it: categorical: ['{0}']; inputs: [...] leaves columns out; {1}",
                     column, skip_help) +
         (cell.size() > longest_token ? ""
                                      : fmt::format("; if it says that the number is missing: {}{}", values,
                                                    takes_missing ? "" : ", and missing: mean"));
}

}  // namespace

CellFault input_fault(const CellNumber& number, std::string_view cell, const std::string& column, const Csv& csv,
                      bool new_rows) {
  switch (number.kind) {
    case CellNumber::Kind::missing:
      return {cell.empty() ? "the cell is empty, expected a number"
                           : fmt::format("{} says that a number is missing", shown_cell(cell)),
              "missing: mean takes the mean of the column; or remove the row"};
    case CellNumber::Kind::infinite:
    case CellNumber::Kind::beyond_float: return large_fault(cell);
    default: break;
  }
  if (is_decimal_comma(cell)) {
    return {fmt::format("{} is no number", shown_cell(cell)),
            "numbers have a decimal point: write them so, without separators of thousands"};
  }
  if (plain_number(cell)) return formatted_fault(cell);
  if (date_in(cell)) {
    return {fmt::format("{} is a date, expected a number", shown_cell(cell)),
            "write a number in the program that makes the table, such as the days since a fixed day, or the year; or "
            "leave the column out of inputs"};
  }
  return {fmt::format("{} is no number", shown_cell(cell)), help_on_text(csv, column, cell, new_rows)};
}

CellFault large_fault(std::string_view cell) {
  const bool is_infinite = to_number(cell).kind == CellNumber::Kind::infinite;
  return {fmt::format("{} {}", shown_cell(cell), is_infinite ? "is infinite" : "overflows float32"),
          "the largest float32 is about 3.4e38; " + std::string(skip_help)};
}

CellFault formatted_fault(std::string_view cell) {
  return {fmt::format("{} is a number with signs that are no part of it", shown_cell(cell)),
          fmt::format("write {}, and the other numbers of the column so: digits and a decimal point alone",
                      plain_number(cell).value_or(""))};
}

CellFault missing_category_fault(std::string_view cell) {
  return {cell.empty() ? "the cell is empty, expected a category"
                       : fmt::format("{} means an empty cell, by missing_categories", shown_cell(cell)),
          "missing: fill makes a category of empty cells; or write one, such as unknown"};
}

CellFault target_fault(const CellNumber& number, std::string_view cell, bool several, bool labels) {
  const std::string what = shown_cell(cell);
  if (labels) return {what + " is no label", "a label is 0 or 1, no or yes, or False or True"};
  if (number.kind == CellNumber::Kind::missing) {
    return {what + " is no number, and the loss takes numbers", "remove the row"};
  }
  std::string help = several ? "several labels take sigmoid_cross_entropy" : "for classes use softmax_cross_entropy";
  if (truth_of(cell)) help = "write 0 and 1; " + help;
  return {what + " is no number, and the loss takes numbers", std::move(help)};
}

CellFault empty_target_fault(bool has_texts) {
  return {"the cell is empty, expected a target",
          has_texts
              ? "remove the row; where cells are lists of labels, label_separator takes an empty one as one without "
                "a label"
              : "remove the row"};
}

}  // namespace pmaptrain::data
