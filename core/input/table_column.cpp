#include "core/input/table_column.h"

#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "core/data/tables/csv_reader.h"
#include "core/input/inspect.h"

namespace pmaptrain::input {
namespace {

// Maximum number of rows with texts in a column of numbers.
constexpr std::size_t most_text_rows = std::size_t{1} << 16;

// "0,579"
bool has_decimal_comma(std::string_view cell) {
  std::string text(cell);
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos) return false;
  text[comma] = '.';
  return data::to_number(text).kind == data::CellNumber::Kind::number;
}

// What stands for a missing value in tables of numbers; "NA" and the like are read so always.
const WordSet placeholder_words = {"?",       "??",      "-",       "--",      "---",     "*",       ".",
                                   "..",      "na",      "n.a.",    "N.A.",    "missing", "Missing", "MISSING",
                                   "unknown", "Unknown", "#DIV/0!", "#VALUE!", "#REF!",   "#NUM!"};

// "01234": digits of a code, not of a number.
bool is_padded(std::string_view cell) {
  return cell.size() > 1 && cell.front() == '0' && cell.find_first_not_of("0123456789") == std::string_view::npos;
}

// The unit of a number with one behind it: "kg" of "12 kg"; empty without.
std::string_view unit_of(std::string_view cell) {
  cell = data::without_blanks(cell);
  const std::size_t end = cell.find_last_of("0123456789");
  if (end == std::string_view::npos) return {};
  std::string_view unit = cell.substr(end + 1);
  const std::string_view number = cell.substr(0, end + 1);
  if (data::to_number(number).kind != data::CellNumber::Kind::number && !data::plain_number(number)) return {};
  unit = data::without_blanks(unit);
  constexpr std::size_t longest = 12;
  const bool is_word = !unit.empty() && unit.size() <= longest &&
                       unit.find_first_of("0123456789.,:;-/()[]'\"") == std::string_view::npos;
  return is_word ? unit : std::string_view();
}

// A list as Python or JSON writes it: "['a', 'b']", "[]".
bool is_list(std::string_view cell) {
  cell = data::without_blanks(cell);
  if (cell.size() < 2) return false;
  const char open = cell.front(), close = cell.back();
  if (open == '[' && close == ']') return true;
  const bool is_other = (open == '(' && close == ')') || (open == '{' && close == '}');
  return is_other && cell.size() > 2 && (cell[1] == '\'' || cell[1] == '"');
}

// Whether a cell says whether a label applies.
bool is_truth(const data::CellNumber& number, std::string_view cell) {
  if (number.kind == data::CellNumber::Kind::number) return number.value == 0 || number.value == 1;
  return number.kind == data::CellNumber::Kind::text && data::truth_of(cell).has_value();
}

}  // namespace

void count_cell(Column& column, std::string_view cell, std::size_t row, std::int64_t line) {
  const data::CellNumber number = data::to_number(cell);
  if (is_truth(number, cell)) {
    ++column.truths;
  } else if (number.kind != data::CellNumber::Kind::missing && column.other.line == 0) {
    column.other = {std::string(cell), line};
  }
  if (number.kind == data::CellNumber::Kind::text) {
    if (column.texts++ == 0) column.text = {std::string(cell), line};
    if (const std::string_view unit = unit_of(cell); !unit.empty()) {
      if (column.unit.empty()) column.unit = unit;
      if (column.unit == unit) ++column.with_unit;
    }
    constexpr int spaces_of_sentence = 3;
    if (std::count(cell.begin(), cell.end(), ' ') >= spaces_of_sentence) ++column.sentences;
    if (is_list(cell) && column.lists++ == 0) column.list = {std::string(cell), line};
    if (const std::optional<data::DateCell> date = data::date_in(cell)) {
      ++column.dates;
      column.order.take(*date);
    }
    const std::string_view word = data::without_blanks(cell);
    if (placeholder_words.contains(word)) ++column.placeholders[std::string(word)];
    column.has_leading_zero = column.has_leading_zero || cell.starts_with("0,") || cell.starts_with("-0,");
    if (has_decimal_comma(cell)) {
      ++column.decimal_commas;
      column.decimal_comma = cell;
    }
    if (data::plain_number(cell)) {
      ++column.formatted;
      column.with_signs = cell;
    }
  }
  if (number.kind != data::CellNumber::Kind::missing && column.values.size() <= most_values)
    column.values.emplace(cell);
  if (number.kind == data::CellNumber::Kind::missing) {
    if (column.missing++ == 0) column.missing_line = line;
    if (cell.empty() && column.empty++ == 0) column.empty_line = line;
    if (!cell.empty()) column.missing_words.emplace(data::without_blanks(cell));
  } else if (number.kind != data::CellNumber::Kind::text) {
    ++column.numbers;
    if (is_padded(cell) && column.padded.empty()) column.padded = cell;
    if (const std::optional<data::DateCell> date = data::compact_date_in(cell)) {
      ++column.compact_dates;
      column.order.take(*date);
    }
  }
  if (number.kind == data::CellNumber::Kind::text) {
    if (column.text_rows.size() <= most_text_rows) column.text_rows.push_back(row);
    return;
  }
  const double first = number.value - static_cast<double>(row);
  if (!column.first) column.first = first;
  column.has_integers = column.has_integers && number.kind == data::CellNumber::Kind::number && number.integer;
  column.counts_rows =
      column.counts_rows && column.has_integers && (first == 0 || first == 1) && first == *column.first;
}

bool has_dates(const Column& column) {
  if (column.texts > 0) return column.dates == column.texts && column.numbers == 0;
  return column.numbers > 2 && column.compact_dates == column.numbers;
}

bool names_rows(const Column& column) {
  static const WordSet first = {"id", "index", "unnamed", "uid", "uuid", "guid", "key"};
  static const WordSet last = {"id", "uid", "uuid", "guid", "key", "index"};
  const std::vector<std::string> words = words_of(column.name);
  if (words.empty() || first.contains(words.front()) || last.contains(words.back())) return true;
  const std::string_view name = column.name;  // "customerId"
  return name.size() > 2 && (name.ends_with("Id") || name.ends_with("ID")) && name[name.size() - 3] >= 'a' &&
         name[name.size() - 3] <= 'z';
}

bool has_number_for_each_row(const Column& column) {
  const bool all_differ = column.values.size() >= std::min(column.numbers, most_values + 1);
  return column.texts == 0 && column.numbers > 0 && column.has_integers && all_differ;
}

bool has_unit(const Column& column) { return column.with_unit > 0 && column.with_unit == column.texts; }

bool has_lists(const Column& column) { return column.lists > 0 && 2 * column.lists >= column.texts; }

bool has_stray_texts(const Column& column) {
  return column.texts > 0 && column.dates < column.texts && column.numbers >= 9 * column.texts;
}

std::size_t most_texts(std::size_t rows) { return std::min(most_values, std::max<std::size_t>(20, rows / 10)); }

// Whether the rows of its texts may be left out, so that it is one of numbers. A text that comes again is a category,
// unless the numbers are too many for categories.
bool is_of_numbers(const Column& column, std::size_t rows) {
  return has_stray_texts(column) && (column.texts == 1 || column.values.size() > most_texts(rows));
}

std::string strays_of(const Column& column) {
  return "has numbers but in " + counted(static_cast<std::int64_t>(column.texts), "row") + ", such as " +
         data::shown_cell(column.text.text) + " in line " + std::to_string(column.text.line);
}

bool has_sentences(const Column& column, std::size_t rows) {
  return column.texts > 0 && column.values.size() > most_texts(rows) && 2 * column.sentences > rows &&
         !has_dates(column) && !has_lists(column);
}

std::string why_ignored(const Column& column, bool is_first, std::size_t rows) {
  if (column.is_empty()) return "it is empty";
  if (has_dates(column)) return "it has dates";
  // A column with a single text is one of texts, in which numbers are categories as well.
  if (column.texts > 0 && column.values.size() > most_texts(rows)) {
    if (has_stray_texts(column)) {
      return "it " + strays_of(column) + ": mend these, or name the column in inputs and set on_error: skip";
    }
    if (has_unit(column))
      return "its numbers have a unit, such as " + data::shown_cell(column.text.text) + ": write them without it";
    const bool is_more = column.values.size() > most_values;
    return "it has " + (is_more ? "more than " + with_commas(most_values) : with_commas(std::ssize(column.values))) +
           " different texts";
  }
  if (rows <= 2 || column.texts > 0) return "";
  if (column.counts_rows && (names_rows(column) || is_first)) return "it numbers the rows";
  if (names_rows(column) && has_number_for_each_row(column)) return "it names the rows by numbers";
  return "";
}

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

std::vector<std::string> spellings_of_missing(const Column& column) {
  std::vector<std::string> words;
  for (const std::string& word : column.missing_words) {
    if (word != "None") words.push_back(word);  // which may be a category as well
  }
  for (const auto& entry : column.placeholders) words.push_back(entry.first);
  return words.size() + (column.empty > 0 ? 1 : 0) > 1 ? words : std::vector<std::string>();
}

bool take_codes(Column& column) {
  if (column.padded.empty() || column.texts > 0 || !column.has_integers || has_dates(column)) return false;
  column.texts = std::exchange(column.numbers, 0);
  return true;
}

}  // namespace pmaptrain::input
