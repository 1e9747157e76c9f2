// What the columns of a table seem to be.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/skipped.h"
#include "core/data/sources/dates.h"
#include "core/data/sources/inspect.h"
#include "core/data/tables/csv_reader.h"
#include "core/data/text_encoding.h"

namespace pmaptrain::data {
namespace {

using Words = std::set<std::string, std::less<>>;

// Maximum number of distinct values of a column; a column with more texts is not an input.
constexpr std::size_t most_values = std::size_t{1} << 16;
// Maximum number of rows with texts in a column of numbers.
constexpr std::size_t most_text_rows = std::size_t{1} << 16;

// The delimiter that splits the first records into most cells, as many in each. One that leaves quotes within cells
// is taken only where no other splits them.
char delimiter_of(std::string_view text) {
  char best = ',';
  Grid most{1, true};
  for (const char delimiter : {',', ';', '\t', '|'}) {
    const Grid grid = grid_of(text, delimiter, 20);
    const bool is_cleaner = most.has_quotes && !grid.has_quotes, is_larger = grid.columns > most.columns;
    if (grid.columns < 2 || !(is_cleaner || (is_larger && most.has_quotes == grid.has_quotes))) continue;
    best = delimiter;
    most = grid;
  }
  return best;
}

struct Column {
  std::string name;
  std::size_t texts = 0, numbers = 0, missing = 0, empty = 0, dates = 0, decimal_commas = 0, formatted = 0;
  bool is_empty() const { return texts + numbers == 0; }
  // Among texts, NA and the like are texts.
  bool has_missing() const { return texts > 0 ? empty > 0 : missing > 0; }
  std::string decimal_comma, with_signs;  // one of them
  std::string text;                       // the first one, and its line
  std::int64_t text_line = 0;
  std::vector<std::size_t> text_rows;                            // the first of them
  bool has_leading_zero = false;                                 // "0,579"
  std::map<std::string, std::size_t, std::less<>> placeholders;  // "?", and how often
  std::string padded;                                            // "01234"
  std::size_t compact_dates = 0;                                 // "20240131", among numbers
  DateOrder order;
  // These flags concern cells that are not texts.
  bool has_integers = true;     // alone
  bool counts_rows = true;      // they are 0, 1, 2, ... or 1, 2, 3, ...
  std::optional<double> first;  // what the first row would have so
  Words values;                 // different ones, as long as they are few
};

// "0,579"
bool has_decimal_comma(std::string_view cell) {
  std::string text(cell);
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos) return false;
  text[comma] = '.';
  return to_number(text).kind == CellNumber::Kind::number;
}

// What stands for a missing value in tables of numbers; "NA" and the like are read so always.
const Words placeholder_words = {"?",       "??",      "-",       "--",      "---",     "*",       ".",
                                 "..",      "na",      "n.a.",    "N.A.",    "missing", "Missing", "MISSING",
                                 "unknown", "Unknown", "#DIV/0!", "#VALUE!", "#REF!",   "#NUM!"};

// "01234": digits of a code, not of a number.
bool is_padded(std::string_view cell) {
  return cell.size() > 1 && cell.front() == '0' && cell.find_first_not_of("0123456789") == std::string_view::npos;
}

void take(Column& column, std::string_view cell, std::size_t row, std::int64_t line) {
  const CellNumber number = to_number(cell);
  if (number.kind == CellNumber::Kind::text) {
    if (column.texts++ == 0) {
      column.text = cell;
      column.text_line = line;
    }
    if (const std::optional<DateCell> date = date_in(cell)) {
      ++column.dates;
      column.order.take(*date);
    }
    const std::string_view word = without_blanks(cell);
    if (placeholder_words.contains(word)) ++column.placeholders[std::string(word)];
    column.has_leading_zero = column.has_leading_zero || cell.starts_with("0,") || cell.starts_with("-0,");
    if (has_decimal_comma(cell)) {
      ++column.decimal_commas;
      column.decimal_comma = cell;
    }
    if (plain_number(cell)) {
      ++column.formatted;
      column.with_signs = cell;
    }
  }
  if (number.kind != CellNumber::Kind::missing && column.values.size() <= most_values) column.values.emplace(cell);
  if (number.kind == CellNumber::Kind::missing) {
    ++column.missing;
    if (cell.empty()) ++column.empty;
  } else if (number.kind != CellNumber::Kind::text) {
    ++column.numbers;
    if (is_padded(cell) && column.padded.empty()) column.padded = cell;
    if (const std::optional<DateCell> date = compact_date_in(cell)) {
      ++column.compact_dates;
      column.order.take(*date);
    }
  }
  if (number.kind == CellNumber::Kind::text) {
    if (column.text_rows.size() <= most_text_rows) column.text_rows.push_back(row);
    return;
  }
  const double first = number.value - static_cast<double>(row);
  if (!column.first) column.first = first;
  column.has_integers = column.has_integers && number.kind == CellNumber::Kind::number && number.integer;
  column.counts_rows =
      column.counts_rows && column.has_integers && (first == 0 || first == 1) && first == *column.first;
}

bool has_dates(const Column& column) {
  if (column.texts > 0) return column.dates == column.texts && column.numbers == 0;
  return column.numbers > 2 && column.compact_dates == column.numbers;
}

bool names_rows(const Column& column) {
  const std::vector<std::string> words = words_of(column.name);
  return words.empty() || words.front() == "id" || words.front() == "index" || words.back() == "id" ||
         words.front() == "unnamed";
}

// Whether a column has few texts among many numbers, so that its texts are probably mistakes.
bool has_stray_texts(const Column& column) {
  return column.texts > 0 && column.dates < column.texts && column.numbers >= 9 * column.texts;
}

// A column of texts that has more of them is no input.
std::size_t most_texts(std::size_t rows) { return std::min(most_values, std::max<std::size_t>(20, rows / 10)); }

// Whether the rows of its texts may be left out, so that it is one of numbers. A text that comes again is a category,
// unless the numbers are too many for categories.
bool is_of_numbers(const Column& column, std::size_t rows) {
  return has_stray_texts(column) && (column.texts == 1 || column.values.size() > most_texts(rows));
}

std::string strays_of(const Column& column) {
  return "has numbers but in " + counted(static_cast<std::int64_t>(column.texts), "row") + ", such as " +
         shown_cell(column.text) + " in line " + std::to_string(column.text_line);
}

// Why a column that is not the target is no input; empty where it is one.
std::string why_ignored(const Column& column, bool is_first, std::size_t rows) {
  if (column.is_empty()) return "it is empty";
  if (has_dates(column)) return "it has dates";
  // A column with a single text is one of texts, in which numbers are categories as well.
  if (column.texts > 0 && column.values.size() > most_texts(rows)) {
    if (has_stray_texts(column)) {
      return "it " + strays_of(column) + ": mend these, or name the column in inputs and set on_error: skip";
    }
    const bool is_more = column.values.size() > most_values;
    return "it has " + (is_more ? "more than " + with_commas(most_values) : with_commas(std::ssize(column.values))) +
           " different texts";
  }
  if (rows <= 2 || column.texts > 0) return "";
  if (column.counts_rows && (names_rows(column) || is_first)) return "it numbers the rows";
  const bool all_differ = column.values.size() >= std::min(column.numbers, most_values + 1);
  if (names_rows(column) && column.has_integers && all_differ) return "it names the rows by numbers";
  return "";
}

// A column of numbers in which texts stand for missing ones becomes one of numbers. Returns these texts.
std::vector<std::string> take_placeholders(Column& column) {
  std::size_t count = 0;
  for (const auto& entry : column.placeholders) count += entry.second;
  if (count == 0 || count != column.texts || column.numbers == 0) return {};
  std::vector<std::string> words;
  for (const auto& [word, times] : column.placeholders) {
    words.push_back(word);
    column.values.erase(word);
  }
  column.missing += count;
  column.texts = 0;
  column.text_rows.clear();
  return words;
}

// A column of numbers with leading zeros is one of codes, such as those of places: texts.
bool take_codes(Column& column) {
  if (column.padded.empty() || column.texts > 0 || !column.has_integers || has_dates(column)) return false;
  column.texts = std::exchange(column.numbers, 0);
  return true;
}

std::size_t named_target(const std::vector<Column>& columns, const std::string& name, const std::string& path) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name) return i;
    names.push_back(columns[i].name);
  }
  const std::string near = nearest(name, names);
  fail_data("'" + path + "' has no column '" + printable(name) + "' for --target",
            near.empty() ? "its columns are " + join(names, ", ") : "did you mean '" + near + "'?");
}

std::size_t guessed_target(const std::vector<Column>& columns) {
  static const Words names = {"target", "label", "labels", "class", "y", "outcome", "species", "output", "response"};
  for (std::size_t i = columns.size(); i-- > 0;) {
    if (names.contains(letters_of(columns[i].name))) return i;
  }
  return columns.size() - 1;
}

// The text between labels where cells of the target are lists of them: a few labels in many combinations.
std::string separator_of(const Column& column) {
  constexpr std::size_t least_rows_of_label = 5;
  if (column.texts == 0 || column.values.size() > most_values) return "";
  for (const char separator : {';', '|', ','}) {
    Words labels;
    bool is_list = false;
    for (const std::string& cell : column.values) {
      std::size_t count = 0;
      for (std::string_view rest = cell; !rest.empty();) {
        const std::size_t end = std::min(rest.find(separator), rest.size());
        if (const std::string_view label = without_blanks(rest.substr(0, end)); !label.empty()) {
          labels.emplace(label);
          ++count;
        }
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
      is_list = is_list || count > 1;
    }
    const bool are_few = labels.size() * least_rows_of_label <= column.texts + column.numbers;
    if (is_list && are_few && labels.size() <= column.values.size()) return {separator};
  }
  return "";
}

// What the columns to predict say of the table, and whether they can be predicted.
void take_target(TableLayout& layout, const Column& column, const std::string& path, std::size_t rows) {
  layout.targets.push_back(column.name);
  if (column.is_empty()) {
    fail_data("column '" + column.name + "' of '" + path + "', the target, is empty",
              "the target is the last column, or one that is called 'target' or 'label'");
  }
  layout.label_separator = separator_of(column);
  if (!layout.label_separator.empty() || !has_stray_texts(column)) return;
  if (column.values.size() > most_texts(rows)) {
    fail_data("column '" + column.name + "' of '" + path + "', the target, " + strays_of(column),
              "mend these cells, or remove their rows");
  }
  layout.notes.push_back("Column '" + column.name + "', the target, " + strays_of(column) +
                         ": all its cells are taken as classes.");
}

spec::TextEncoding encoding_of(const std::string& path) {
  const Bytes file = map_file(path);
  constexpr std::size_t most = std::size_t{16} << 20;  // a large file is judged by its beginning
  if (!is_gzip(file.view())) return guess_encoding(file.view().first(std::min(file.size(), most)));
  std::vector<std::byte> begin(most);
  Inflater inflater(file.view(), Compression::gzip, "'" + path + "'");
  begin.resize(inflater.read(begin));
  return guess_encoding(begin);
}

}  // namespace

std::string_view name_of(spec::TextEncoding encoding) {
  switch (encoding) {
    case spec::TextEncoding::utf8: return "utf-8";
    case spec::TextEncoding::latin1: return "latin-1";
    case spec::TextEncoding::windows1252: return "windows-1252";
    case spec::TextEncoding::utf16: break;
  }
  return "utf-16";
}

TableLayout find_columns(const std::string& path, const std::vector<std::string>& chosen) {
  TableLayout layout;
  layout.encoding = encoding_of(path);
  if (layout.encoding != spec::TextEncoding::utf8) {
    layout.notes.push_back(std::string("The text is not UTF-8 and is read as ") +
                           std::string(name_of(layout.encoding)) +
                           ", which its bytes suggest: look whether names are spelt well.");
  }
  const Bytes bytes = read_text(path, layout.encoding);
  const std::string_view text = as_text(bytes);
  layout.delimiter = delimiter_of(text);
  CsvReader reader(text, layout.delimiter, path);
  std::vector<Column> columns;
  std::vector<std::string> first;
  if (reader.next_record()) {
    while (const auto cell = reader.next_cell()) first.emplace_back(*cell);
  }
  if (first.size() < 2) {
    fail_data(
        "'" + path + "' has " + (first.empty() ? "no columns" : "one column") + ", expected the inputs and a target",
        "cells are separated by commas, semicolons, tabs or '|'");
  }
  // A header has no numbers. It may have NA, the code of Namibia.
  layout.header = std::none_of(first.begin(), first.end(), [](const std::string& cell) {
    const CellNumber::Kind kind = to_number(cell).kind;
    return kind != CellNumber::Kind::text && kind != CellNumber::Kind::missing;
  });
  for (std::size_t i = 0; i < first.size(); ++i)
    columns.emplace_back().name = layout.header ? std::string(without_blanks(first[i])) : std::to_string(i);
  std::size_t rows = 0;
  if (!layout.header) {
    for (std::size_t i = 0; i < first.size(); ++i) take(columns[i], first[i], 0, reader.line());
    ++rows;
  }
  for (; reader.next_record(); ++rows) {
    for (Column& column : columns) {
      const auto cell = reader.next_cell();
      if (cell) take(column, *cell, rows, reader.line());
    }
  }
  for (const Column& column : columns) {
    // "324,442" may be either; with all cells so, thousands are likelier than three decimals each.
    const bool has_thousands = column.formatted == column.texts && !column.has_leading_zero;
    if (!column.decimal_comma.empty() && column.decimal_commas == column.texts && !has_thousands) {
      fail_data("column '" + column.name + "' of '" + path + "' has numbers with a decimal comma, such as '" +
                    column.decimal_comma + "'",
                "write them with a decimal point: in pandas, to_csv(decimal='.')");
    }
    if (column.formatted > 0 && column.formatted == column.texts) {
      fail_data(
          "column '" + column.name + "' of '" + path + "' has numbers with signs that are no part of them, such as '" +
              column.with_signs + "'",
          "write " + plain_number(column.with_signs).value_or("") +
              ", and the others so: digits and a decimal point alone" +
              (column.decimal_commas == column.texts ? "; if the comma is a decimal one, write a point for it" : ""));
    }
  }
  if (rows == 0) fail_data("'" + path + "' has no rows" + (layout.header ? " but its header" : ""));
  std::set<std::size_t> targets;
  for (const std::string& name : chosen) {
    if (const std::size_t at = named_target(columns, name, path); targets.insert(at).second)
      take_target(layout, columns[at], path, rows);
  }
  if (chosen.empty()) {
    const std::size_t at = *targets.insert(guessed_target(columns)).first;
    layout.target_because = at + 1 == columns.size() ? "the last column" : "by its name";
    take_target(layout, columns[at], path, rows);
  }
  if (targets.size() > 1) layout.label_separator.clear();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Column& column = columns[i];
    if (column.order.is_ascending() && has_dates(column) && layout.dated_by.empty()) layout.dated_by = column.name;
    if (targets.contains(i)) continue;
    for (const std::string& word : take_placeholders(column)) {
      std::vector<std::string>& words = layout.missing_values;
      if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
    }
    if (take_codes(column)) {
      layout.notes.push_back("Column '" + column.name + "' has numbers with leading zeros, such as '" + column.padded +
                             "': they are taken as texts.");
    }
  }
  // A few texts in an input column do not make its numbers categories; their rows are left out.
  std::vector<std::pair<std::size_t, std::size_t>> of_numbers;  // columns, and how many texts they have
  std::set<std::size_t> stray_rows;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Column& column = columns[i];
    if (targets.contains(i) || !is_of_numbers(column, rows)) continue;
    const std::size_t texts = std::exchange(column.texts, 0);
    if (!why_ignored(column, i == 0, rows).empty()) continue;  // no input, whatever its texts
    of_numbers.emplace_back(i, texts);
    stray_rows.insert(column.text_rows.begin(), column.text_rows.end());
  }
  const auto count = static_cast<std::int64_t>(rows), strays = std::ssize(stray_rows);
  layout.has_stray_texts = strays > 0 && strays * least_for_one_skipped <= count && strays <= most_skipped(count);
  for (const auto& [i, texts] : of_numbers) {
    if (!layout.has_stray_texts) columns[i].texts = texts;
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    if (targets.contains(i)) continue;
    const bool is_text = column.texts > 0;
    if (std::string why = why_ignored(column, i == 0, rows); !why.empty()) {
      layout.ignored.push_back({column.name, std::move(why)});
      continue;
    }
    layout.inputs.push_back(column.name);
    if (is_text) layout.categorical.push_back(column.name);
    if (has_stray_texts(column)) {
      layout.notes.push_back("Column '" + column.name + "' " + strays_of(column) +
                             ": all its cells are taken as texts.");
    }
    layout.has_missing = layout.has_missing || column.has_missing();
  }
  if (layout.inputs.empty()) {  // then a column that counts the rows is one
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Column& column = columns[i];
      if (column.texts == 0 && !column.is_empty() && !targets.contains(i)) layout.inputs.push_back(column.name);
    }
    std::erase_if(layout.ignored, [&](const TableLayout::Ignored& ignored) {
      return std::find(layout.inputs.begin(), layout.inputs.end(), ignored.column) != layout.inputs.end();
    });
  }
  if (layout.inputs.empty()) {
    std::vector<std::string> reasons;
    for (const auto& [column, why] : layout.ignored) reasons.push_back("'" + shown_name(column) + "': " + why);
    fail_data("no column of '" + path + "' can be an input beside '" + join(layout.targets, "', '") + "'",
              join(reasons, "; "));
  }
  return layout;
}

}  // namespace pmaptrain::data
