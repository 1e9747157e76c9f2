// What the columns of a table seem to be.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/skipped.h"
#include "core/data/tables/csv_reader.h"
#include "core/data/tables/json_rows.h"
#include "core/data/text_encoding.h"
#include "core/input/inspect.h"
#include "core/input/table_column.h"
#include "core/input/table_target.h"

namespace pmaptrain::input {
namespace {

// The delimiter that splits the first records into most cells, as many in each. One that leaves quotes within cells
// is taken only where no other splits them.
char delimiter_of(std::string_view text) {
  char best = ',';
  data::Grid most{1, true};
  for (const char delimiter : {',', ';', '\t', '|'}) {
    const data::Grid grid = data::grid_of(text, delimiter, 20);
    const bool is_cleaner = most.has_quotes && !grid.has_quotes, is_larger = grid.columns > most.columns;
    if (grid.columns < 2 || !(is_cleaner || (is_larger && most.has_quotes == grid.has_quotes))) continue;
    best = delimiter;
    most = grid;
  }
  return best;
}

void check_names_differ(const std::vector<Column>& columns, const std::string& path) {
  std::map<std::string_view, std::size_t> at;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto [first, is_new] = at.emplace(columns[i].name, i);
    if (is_new || columns[i].name.empty()) continue;
    fail_data("'" + path + "' has two columns " + data::shown_cell(columns[i].name) + ": columns " +
                  std::to_string(first->second + 1) + " and " + std::to_string(i + 1),
              "give each column a name of its own");
  }
}

// A column of texts becomes an input of categories.
void take_texts(const Column& column, TableLayout& layout) {
  layout.categorical.push_back(column.name);
  layout.most_categories = std::max(layout.most_categories, column.values.size());
  for (const std::string& word : spellings_of_missing(column)) {
    std::vector<std::string>& words = layout.missing_categories;
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
    layout.has_missing = true;
  }
}

// Says of an input what it may be instead.
void note_unclear(const Column& column, std::size_t rows, TableLayout& layout) {
  constexpr std::size_t least_rows = 200;  // fewer may differ by chance
  if (has_unit(column) && column.values.size() > 2) {
    layout.notes.push_back("Column '" + column.name + "' has numbers with a unit, such as " +
                           data::shown_cell(column.text.text) +
                           ", which are taken as texts: without it they are numbers.");
  }
  if (rows >= least_rows && has_number_for_each_row(column)) layout.numbers_of_rows.push_back(column.name);
}

data::TextEncoding encoding_of(const std::string& path) {
  const data::Bytes file = data::map_file(path);
  constexpr std::size_t most = std::size_t{16} << 20;  // a large file is judged by its beginning
  if (!data::is_gzip(file.view())) return data::guess_encoding(file.view().first(std::min(file.size(), most)));
  std::vector<std::byte> begin(most);
  data::Inflater inflater(file.view(), data::Compression::gzip, "'" + path + "'");
  begin.resize(inflater.read(begin));
  return data::guess_encoding(begin);
}

}  // namespace

std::string_view name_of(data::TextEncoding encoding) {
  switch (encoding) {
    case data::TextEncoding::utf8: return "utf-8";
    case data::TextEncoding::latin1: return "latin-1";
    case data::TextEncoding::windows1252: return "windows-1252";
    case data::TextEncoding::utf16: break;
  }
  return "utf-16";
}

TableLayout find_columns(const std::string& path, const std::vector<std::string>& chosen) {
  TableLayout layout;
  layout.encoding = encoding_of(path);
  if (layout.encoding != data::TextEncoding::utf8) {
    layout.notes.push_back(std::string("The text is not UTF-8 and is read as ") +
                           std::string(name_of(layout.encoding)) +
                           ", which its bytes suggest: look whether names are spelt well.");
  }
  data::Bytes bytes = data::read_text(path, layout.encoding);
  if (data::has_json_lines(path)) bytes = data::rows_of_json(path, bytes, ',').text;
  const std::string_view text = data::as_text(bytes);
  layout.delimiter = delimiter_of(text);
  data::CsvReader reader(text, layout.delimiter, path);
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
    const data::CellNumber::Kind kind = data::to_number(cell).kind;
    return kind != data::CellNumber::Kind::text && kind != data::CellNumber::Kind::missing;
  });
  for (std::size_t i = 0; i < first.size(); ++i)
    columns.emplace_back().name = layout.header ? std::string(data::without_blanks(first[i])) : std::to_string(i);
  check_names_differ(columns, path);
  std::size_t rows = 0;
  if (!layout.header) {
    for (std::size_t i = 0; i < first.size(); ++i) count_cell(columns[i], first[i], 0, reader.line());
    ++rows;
  }
  for (; reader.next_record(); ++rows) {
    for (Column& column : columns) {
      const auto cell = reader.next_cell();
      if (cell) count_cell(column, *cell, rows, reader.line());
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
          "write " + data::plain_number(column.with_signs).value_or("") +
              ", and the others so: digits and a decimal point alone" +
              (column.decimal_commas == column.texts ? "; if the comma is a decimal one, write a point for it" : ""));
    }
  }
  if (rows == 0) fail_data("'" + path + "' has no rows" + (layout.header ? " but its header" : ""));
  const std::vector<std::size_t> found = find_targets(columns, chosen, path, rows, layout);
  const std::set<std::size_t> targets(found.begin(), found.end());
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
  layout.has_stray_texts = strays > 0 && strays * least_for_one_skipped <= count && strays <= data::most_skipped(count);
  for (const auto& [i, texts] : of_numbers) {
    if (!layout.has_stray_texts) columns[i].texts = texts;
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    if (targets.contains(i)) continue;
    const bool is_text = column.texts > 0;
    if (std::string why = why_ignored(column, i == 0, rows); !why.empty()) {
      const bool has_categories = is_text && !has_dates(column) && !has_unit(column) && !has_stray_texts(column) &&
                                  2 * column.values.size() <= column.texts + column.numbers;
      layout.ignored.push_back({column.name, std::move(why), has_categories});
      continue;
    }
    layout.inputs.push_back(column.name);
    if (is_text) take_texts(column, layout);
    note_unclear(column, rows, layout);
    if (has_stray_texts(column)) {
      layout.notes.push_back("Column '" + column.name + "' " + strays_of(column) +
                             ": all its cells are taken as texts.");
    }
    layout.has_missing = layout.has_missing || column.has_missing();
  }
  const auto texts = std::max_element(columns.begin(), columns.end(),
                                      [](const Column& a, const Column& b) { return a.sentences < b.sentences; });
  const bool has_texts =
      !targets.contains(static_cast<std::size_t>(texts - columns.begin())) && has_sentences(*texts, rows);
  if (has_texts && layout.inputs.empty()) {
    layout.text = texts->name;
    std::erase_if(layout.ignored, [&](const TableLayout::Ignored& ignored) { return ignored.column == layout.text; });
    return layout;
  }
  if (has_texts) {
    layout.notes.push_back("Column '" + texts->name + "' has texts: `text: " + texts->name +
                           "` in place of inputs, a tokenizer and an embedding "
                           "learn from their words.");
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
    for (const TableLayout::Ignored& no : layout.ignored)
      reasons.push_back("'" + shown_name(no.column) + "': " + no.why);
    fail_data("no column of '" + path + "' can be an input beside '" + join(layout.targets, "', '") + "'",
              join(reasons, "; "));
  }
  return layout;
}

}  // namespace pmaptrain::input
