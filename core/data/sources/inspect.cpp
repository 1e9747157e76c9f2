#include "core/data/sources/inspect.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/arrays/array.h"
#include "core/data/arrays/zip.h"
#include "core/data/images/dataset.h"
#include "core/data/images/files.h"
#include "core/data/skipped.h"
#include "core/data/tables/csv_reader.h"

namespace pmaptrain::data {
namespace {

using Words = std::set<std::string, std::less<>>;

const Words train_words = {"train", "training", "tr"};
const Words validation_words = {"val", "valid", "validation", "dev"};
const Words test_words = {"test", "testing", "te", "eval"};
const Words input_words = {"x", "inputs", "input", "images", "image", "features", "data", "samples"};
const Words target_words = {"y", "targets", "target", "labels", "label", "classes", "class", "outputs", "output"};

std::optional<Split> split_of(std::string_view word) {
  if (train_words.contains(word)) return Split::train;
  if (validation_words.contains(word)) return Split::validation;
  if (test_words.contains(word)) return Split::test;
  return std::nullopt;
}

// The words of a name, in lower case: "X_train" has x and train.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words{""};
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
      words.emplace_back();
    } else {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  std::erase(words, "");
  return words;
}

// ---- archives ------------------------------------------------------------------------------------------------------

struct ArrayHead {
  std::string name;
  Shape shape;
};

std::vector<ArrayHead> heads_of(const std::string& path) {
  const ZipArchive archive(path);
  std::vector<ArrayHead> heads;
  for (const ZipArchive::Entry& entry : archive.entries()) {
    if (!entry.name.ends_with(".npy")) continue;
    const std::string name = entry.name.substr(0, entry.name.size() - 4);
    const Bytes head = archive.head(entry, npy_head_bytes);
    std::string origin = "array '";
    origin.append(name).append("' of '").append(path).append("'");
    heads.push_back({name, check_npy_head(head.view(), entry.uncompressed, origin).shape});
  }
  return heads;
}

std::int64_t elements_of(const ArrayHead& head) { return numel(head.shape); }

}  // namespace

std::map<Split, ArrayNames> find_arrays(const std::string& path) {
  const std::vector<ArrayHead> heads = heads_of(path);
  std::map<Split, ArrayNames> found;
  for (const ArrayHead& head : heads) {
    Split split = Split::train;
    bool is_input = false, is_target = false;
    for (const std::string& word : words_of(head.name)) {
      split = split_of(word).value_or(split);
      is_input = is_input || input_words.contains(word);
      is_target = is_target || target_words.contains(word);
    }
    if (is_input == is_target) continue;
    std::string& name = is_input ? found[split].inputs : found[split].targets;
    if (!name.empty()) {
      found.clear();
      break;
    }
    name = head.name;
  }
  std::erase_if(found, [](const auto& entry) { return entry.second.inputs.empty() || entry.second.targets.empty(); });
  if (found.contains(Split::train)) return found;
  const bool pair = heads.size() == 2 && !heads[0].shape.empty() && !heads[1].shape.empty() &&
                    heads[0].shape[0] == heads[1].shape[0] && elements_of(heads[0]) != elements_of(heads[1]);
  if (pair) {
    const bool first = elements_of(heads[0]) > elements_of(heads[1]);
    return {{Split::train, {heads[first ? 0 : 1].name, heads[first ? 1 : 0].name}}};
  }
  std::vector<std::string> arrays;
  arrays.reserve(heads.size());
  for (const ArrayHead& head : heads) arrays.push_back("'" + head.name + "' " + to_string(head.shape));
  fail_data("which arrays of '" + path + "' are inputs and targets is not clear: it has " +
                (arrays.empty() ? "none" : join(arrays, ", ")),
            "call them x_train, y_train, x_test and y_test, or x and y; or name them in a config: pmaptrain help "
            "data.source.npz");
}

// ---- tables --------------------------------------------------------------------------------------------------------

namespace {

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
  std::vector<std::size_t> text_rows;  // the first of them
  bool has_leading_zero = false;       // "0,579"
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

// "2024-01-31", "31.01.2024 12:00", "1/31/24": three numbers with the same sign between them, and perhaps a time.
bool is_date(std::string_view cell) {
  char sign = 0;
  for (int part = 0; part < 3; ++part) {
    const std::size_t digits = std::min(cell.find_first_not_of("0123456789"), cell.size());
    if (digits == 0 || digits > 4 || digits == 3) return false;
    cell.remove_prefix(digits);
    if (part == 2) break;
    if (cell.empty() || std::string_view("-./").find(cell[0]) == std::string_view::npos) return false;
    if (part == 1 && cell[0] != sign) return false;
    sign = cell[0];
    cell.remove_prefix(1);
  }
  return cell.empty() || ((cell[0] == ' ' || cell[0] == 'T') && cell.find(':') != std::string_view::npos);
}

void take(Column& column, std::string_view cell, std::size_t row, std::int64_t line) {
  const CellNumber number = to_number(cell);
  if (number.kind == CellNumber::Kind::text) {
    if (column.texts++ == 0) {
      column.text = cell;
      column.text_line = line;
    }
    if (is_date(cell)) ++column.dates;
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
  if (column.texts > 0 && column.dates == column.texts) return "it has dates";
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

std::size_t target_of(const std::vector<Column>& columns) {
  static const Words names = {"target", "label", "labels", "class", "y", "outcome", "species", "output", "response"};
  for (std::size_t i = columns.size(); i-- > 0;) {
    if (names.contains(letters_of(columns[i].name))) return i;
  }
  return columns.size() - 1;
}

}  // namespace

TableLayout find_columns(const std::string& path) {
  const Bytes bytes = read_text(path);
  const std::string_view text = as_text(bytes);
  TableLayout layout;
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
  const std::size_t target = target_of(columns);
  layout.target = columns[target].name;
  if (columns[target].is_empty()) {
    fail_data("column '" + layout.target + "' of '" + path + "', the target, is empty",
              "the target is the last column, or one that is called 'target' or 'label'");
  }
  if (const Column& column = columns[target]; has_stray_texts(column)) {
    if (column.values.size() > most_texts(rows)) {
      fail_data("column '" + column.name + "' of '" + path + "', the target, " + strays_of(column),
                "mend these cells, or remove their rows");
    }
    layout.notes.push_back("Column '" + column.name + "', the target, " + strays_of(column) +
                           ": all its cells are taken as classes.");
  }
  // A few texts in an input column do not make its numbers categories; their rows are left out.
  std::vector<std::pair<std::size_t, std::size_t>> of_numbers;  // columns, and how many texts they have
  std::set<std::size_t> stray_rows;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Column& column = columns[i];
    if (i == target || !is_of_numbers(column, rows)) continue;
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
    if (i == target) continue;
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
    for (const Column& column : columns) {
      if (column.texts == 0 && !column.is_empty() && column.name != layout.target) layout.inputs.push_back(column.name);
    }
    std::erase_if(layout.ignored, [&](const TableLayout::Ignored& ignored) {
      return std::find(layout.inputs.begin(), layout.inputs.end(), ignored.column) != layout.inputs.end();
    });
  }
  if (layout.inputs.empty()) {
    std::vector<std::string> reasons;
    for (const auto& [column, why] : layout.ignored) reasons.push_back("'" + shown_name(column) + "': " + why);
    fail_data("no column of '" + path + "' can be an input beside '" + layout.target + "'", join(reasons, "; "));
  }
  return layout;
}

// ---- images --------------------------------------------------------------------------------------------------------

namespace {

// The size that images of different sizes are brought to: square, the median of the smaller sides, rounded down to a
// multiple of 32, from 32 to 128.
std::int64_t common_side(std::vector<std::int64_t> sides) {
  std::sort(sides.begin(), sides.end());
  return std::clamp<std::int64_t>(sides[sides.size() / 2] / 32 * 32, 32, 128);
}

}  // namespace

ImageFolders find_images(const std::string& path) {
  ImageFolders found;
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    fail_data("'" + path + "' is not a folder", "images are in a folder with one folder for each class");
  }
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    const std::optional<Split> split = split_of(letters_of(entry.path().filename().string()));
    if (split && entry.is_directory(error)) found.folders.emplace(*split, entry.path().string());
  }
  if (!found.folders.contains(Split::train)) found.folders = {{Split::train, path}};
  std::set<std::pair<std::int64_t, std::int64_t>> sizes;
  std::vector<std::int64_t> sides;
  for (const auto& [split, folder] : found.folders) {
    ImageFiles files = list_image_files(folder);
    std::vector<SkippedRow> unread;
    read_heads(files, &unread);
    remove_damaged_few(files, false, unread);
    for (const ImageFile& file : files.files) {
      sizes.emplace(file.head.seen_height(), file.head.seen_width());
      sides.push_back(std::min(file.head.seen_height(), file.head.seen_width()));
    }
  }
  if (sizes.size() > 1) {
    const std::int64_t side = common_side(std::move(sides));
    found.size = {side, side};
  }
  return found;
}

}  // namespace pmaptrain::data
