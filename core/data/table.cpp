#include "core/data/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace pmaptrain::data {
namespace {

constexpr std::size_t most_columns = std::size_t{1} << 20;
// A column with more categories is an identifier or a number rather than a category, and a checkpoint holds them all.
constexpr std::size_t most_categories = std::size_t{1} << 16;
constexpr std::size_t longest_category = 1024;

[[noreturn]] void fail_at(const Place& place, std::string message, std::string help) {
  throw Error(ExitStatus::data, Diagnostic{"data", place, std::move(message), std::move(help), {}});
}

// "a, b, c, and 7 more"
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 12;
  std::vector<std::string> first;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i) first.push_back(shown_cell(names[i]));
  return join(first, ", ") + (names.size() > most ? fmt::format(" and {} more", names.size() - most) : "");
}

bool has_numbers(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return to_number(name).kind == CellNumber::Kind::number; });
}

constexpr const char* no_header = "if the first line has data, header: false names the columns by their number, from 0";

// One column in a file of which another delimiter makes several.
void check_delimiter(const std::vector<std::string>& names, char delimiter, const TableText& file) {
  if (names.size() != 1) return;
  const std::string& path = file.path;
  for (const char other : {',', ';', '\t', '|'}) {
    if (other == delimiter || grid_of(as_text(file.text), other, 1).columns < 2) continue;
    const std::string written = other == '\t' ? "\\t" : std::string(1, other);
    fail_data(fmt::format("'{}' has one column, {}: cells seem to be separated by '{}', not '{}'", path,
                          shown_cell(names[0]), written, delimiter == '\t' ? "\\t" : std::string(1, delimiter)),
              fmt::format("set delimiter: \"{}\"", written));
  }
}

std::size_t find_column(const std::vector<std::string>& names, const std::string& name, const Place& place,
                        const std::string& path, bool header) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  std::string help = nearest(name, names);
  const auto lower = [](std::string text) {
    for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return text;
  };
  for (const std::string& other : names) {
    if (lower(other) == lower(name)) help = other;
  }
  help = help.empty() ? "its columns are " + listed(names) : "did you mean " + shown_cell(help) + "?";
  if (!header) help = fmt::format("with header: false columns are named by their number: 0 to {}", names.size() - 1);
  if (header && has_numbers(names)) help += std::string("; ") + no_header;
  fail_at(place, fmt::format("'{}' has no column '{}'", path, name), std::move(help));
}

}  // namespace

std::vector<std::string> header_of(const spec::Csv& csv, const TableText& file) {
  const std::string& path = file.path;
  CsvReader reader(as_text(file.text), csv.delimiter.front(), path);
  std::vector<std::string> names;
  if (!reader.next_record()) fail_data(fmt::format("'{}' has blank lines alone", path));
  while (const std::optional<std::string_view> cell = reader.next_cell()) {
    if (names.size() == most_columns) {
      fail_data(fmt::format("'{}' has more than {} columns", path, with_commas(most_columns)));
    }
    if (!is_utf8(*cell)) {
      fail_data(fmt::format("'{}', line {}: column {} is not UTF-8", path, reader.line(), names.size() + 1),
                "save the file as UTF-8");
    }
    names.emplace_back(without_blanks(*cell));
  }
  check_delimiter(names, csv.delimiter.front(), file);
  if (!csv.header) {
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = std::to_string(i);
  }
  std::map<std::string_view, std::size_t> seen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto [first, is_new] = seen.emplace(names[i], i);
    if (is_new || names[i].empty()) continue;
    fail_data(
        fmt::format("'{}' has two columns {}: columns {} and {}", path, shown_cell(names[i]), first->second + 1, i + 1),
        has_numbers(names) ? no_header : "give each column a name of its own");
  }
  return names;
}

namespace {

// Reads one table, file after file.
class TableReader {
 public:
  TableReader(const spec::Csv& csv, const TableColumns& columns, TargetKind kind)
      : csv_(csv), columns_(columns), kind_(kind) {}

  Table read(const std::vector<TableText>& files) {
    table_.categories.resize(columns_.inputs.size());
    allocate_rows(files);
    for (const TableText& file : files) {
      try {
        read_file(file);
      } catch (const Error&) {
        file.text.check_intact();  // why what is read is wrong
        throw;
      }
      file.text.check_intact();
    }
    if (table_.rows == 0) {
      fail_data(fmt::format("'{}' has no rows{}", files.front().path, csv_.header ? " but its header" : ""));
    }
    if (table_.target == Table::Target::texts) {
      table_.numbers = {};
      for (const TableText& file : files) read_text_targets(file);
      check_text_targets();
    }
    return std::move(table_);
  }

 private:
  // Takes the memory that the rows need at most: a row is at least as long as its cells are many.
  void allocate_rows(const std::vector<TableText>& files) {
    std::uint64_t rows = 0;
    for (const TableText& file : files) {
      const std::string_view text = as_text(file.text);
      const std::vector<std::string> names = header_of(csv_, file);
      parts_of(names, file.path);  // all inputs are there
      const std::size_t width = names.size();
      rows += std::min<std::uint64_t>(static_cast<std::uint64_t>(count_lines(text)), text.size() / width + 1);
    }
    table_.cells = allocate(rows * columns_.inputs.size() * sizeof(float), fmt::format("'{}'", files.front().path));
    if (!columns_.targets.empty()) {
      table_.target = kind_ == TargetKind::texts ? Table::Target::texts : Table::Target::integers;
      table_.numbers.reserve(kind_ == TargetKind::texts ? 0 : rows * columns_.targets.size());
    }
  }

  // What each column of a file is: an input by its number, a target by its number after the first, or one of these.
  static constexpr std::size_t skipped = std::numeric_limits<std::size_t>::max(), weight = skipped - 1,
                               first_target = skipped / 2;
  static bool is_target(std::size_t part) { return part >= first_target && part < weight; }

  std::vector<std::size_t> parts_of(const std::vector<std::string>& names, const std::string& path) const {
    std::vector<std::size_t> parts(names.size(), skipped);
    const auto take = [&](const std::string& name, const Place& place, std::size_t part) {
      parts[find_column(names, name, place, path, csv_.header)] = part;
    };
    if (columns_.inputs.size() > 64) {
      // By name at once: looking for each would take the square of so many.
      std::map<std::string_view, std::size_t> at;
      for (std::size_t i = 0; i < names.size(); ++i) at.emplace(names[i], i);
      for (std::size_t i = 0; i < columns_.inputs.size(); ++i) {
        const auto found = at.find(columns_.inputs[i].name);
        if (found == at.end()) take(columns_.inputs[i].name, columns_.inputs[i].place, i);  // which fails
        parts[found->second] = i;
      }
    } else {
      for (std::size_t i = 0; i < columns_.inputs.size(); ++i)
        take(columns_.inputs[i].name, columns_.inputs[i].place, i);
    }
    for (std::size_t t = 0; t < columns_.targets.size(); ++t) {
      take(columns_.targets[t].text, columns_.targets[t].place, first_target + t);
    }
    if (!columns_.weight.empty()) take(columns_.weight, columns_.weight_place, weight);
    for (std::size_t i = 0; columns_.only_these && i < names.size(); ++i) {
      if (parts[i] != skipped) continue;
      fail_data(
          fmt::format("'{}' has a column {}, which the first training file does not have", path, shown_cell(names[i])),
          "inputs: [...] names the columns to use");
    }
    return parts;
  }

  [[noreturn]] void fail(const std::string& what, std::string help) const {
    fail_data(fmt::format("'{}', line {}, column '{}': {}", *path_, reader_->line(), (*names_)[column_], what),
              std::move(help));
  }

  // Calls `take(part, cell)` for each cell of each row, and checks that rows have a cell for each column.
  template <class Take>
  void for_each_row(const TableText& file, Take&& take) {
    CsvReader reader(as_text(file.text), csv_.delimiter.front(), file.path);
    const std::vector<std::string> names = header_of(csv_, file);
    const std::vector<std::size_t> parts = parts_of(names, file.path);
    path_ = &file.path;
    names_ = &names;
    reader_ = &reader;
    if (csv_.header) reader.next_record();
    while (reader.next_record()) {
      column_ = 0;
      while (const std::optional<std::string_view> cell = reader.next_cell()) {
        if (column_ == parts.size()) fail_ragged(parts.size() + 1 + remaining(reader), parts.size());
        if (parts[column_] != skipped) take(parts[column_], *cell);
        ++column_;
      }
      if (column_ < parts.size()) fail_ragged(column_, parts.size());
      take.end_of_row();
    }
  }

  static std::size_t remaining(CsvReader& reader) {
    std::size_t cells = 0;
    while (reader.next_cell()) ++cells;
    return cells;
  }

  [[noreturn]] void fail_ragged(std::size_t cells, std::size_t columns) const {
    fail_data(fmt::format("'{}', line {} has {}, but {} {}", *path_, reader_->line(),
                          counted(static_cast<std::int64_t>(cells), "cell"),
                          csv_.header ? "the header has" : "the first line has", columns),
              cells > columns ? "a cell that holds the delimiter must be in double quotes"
                              : "a row has a cell for each column, an empty one where there is nothing");
  }

  struct TakeRow {
    TableReader& table;
    void operator()(std::size_t part, std::string_view cell) const {
      if (is_target(part)) {
        table.take_target(part - first_target, cell);
      } else if (part == weight) {
        table.take_weight(cell);
      } else {
        table.take_input(part, cell);
      }
    }
    void end_of_row() const { ++table.table_.rows; }
  };
  void read_file(const TableText& file) { for_each_row(file, TakeRow{*this}); }

  struct TakeTarget {
    TableReader& table;
    void operator()(std::size_t part, std::string_view cell) const {
      if (is_target(part)) table.take_text_target(cell);
    }
    void end_of_row() const {}
  };
  void read_text_targets(const TableText& file) { for_each_row(file, TakeTarget{*this}); }

  void take_input(std::size_t input, std::string_view cell) {
    std::byte* const to = table_.cells.view.data() +
                          (static_cast<std::size_t>(table_.rows) * columns_.inputs.size() + input) * sizeof(float);
    if (columns_.inputs[input].categorical) {
      const bool may_be_empty = columns_.inputs[input].missing == spec::Missing::category;
      const std::uint32_t code = category(table_.categories[input], cell, may_be_empty);
      std::memcpy(to, &code, sizeof(code));
      return;
    }
    const CellNumber number = to_number(cell);
    auto value = static_cast<float>(number.value);
    if (number.kind == CellNumber::Kind::missing && columns_.inputs[input].missing == spec::Missing::mean) {
      value = std::numeric_limits<float>::quiet_NaN();
      table_.has_missing = true;
    } else if (number.kind != CellNumber::Kind::number) {
      fail_input(number.kind, cell);
    }
    std::memcpy(to, &value, sizeof(value));
  }

  // Empty cells that are a category are one without a text.
  std::uint32_t category(Dictionary& dictionary, std::string_view cell, bool may_be_empty) {
    if (cell.empty() && !may_be_empty) {
      fail("the cell is empty, expected a category",
           "missing: fill makes a category of empty cells; or write one, such as unknown");
    }
    const std::uint32_t code = dictionary.code_of(cell, [&] { return check_new_text(cell); });
    if (dictionary.entries().size() > most_categories) {
      fail(fmt::format("there are more than {} categories", with_commas(most_categories)),
           "a column with a text of its own in each row cannot be learned from: leave it out with inputs: [...]");
    }
    return code;
  }

  // A text that becomes a name. Returns where it is.
  std::string check_new_text(std::string_view cell) const {
    if (!is_utf8(cell)) fail("it is not UTF-8", "save the file as UTF-8");
    if (cell.size() > longest_category) {
      fail(fmt::format("a text of {} bytes, {}, cannot be a category or a class", cell.size(), shown_cell(cell)),
           fmt::format("the longest has {} bytes", longest_category));
    }
    return fmt::format("'{}', line {}", *path_, reader_->line());
  }

  [[noreturn]] void fail_input(CellNumber::Kind kind, std::string_view cell) const {
    const std::string& name = (*names_)[column_];
    switch (kind) {
      case CellNumber::Kind::missing:
        fail(cell.empty() ? "the cell is empty, expected a number"
                          : fmt::format("{} says that a number is missing", shown_cell(cell)),
             "missing: mean takes the mean of the column; or remove the row");
      case CellNumber::Kind::infinite:
      case CellNumber::Kind::beyond_float: fail_large(cell);
      default: break;
    }
    std::string help =
        fmt::format("if '{0}' has categories, list it: categorical: ['{0}']; inputs: [...] leaves columns out", name);
    if (is_decimal_comma(cell)) {
      help = "numbers have a decimal point: write them so, without separators of thousands";
    } else if (plain_number(cell)) {
      fail_formatted(cell);
    }
    if (!csv_.header && table_.rows == 0) help = "if the first line has the names of the columns, set header: true";
    fail(fmt::format("{} is no number", shown_cell(cell)), std::move(help));
  }

  [[noreturn]] void fail_formatted(std::string_view cell) const {
    fail(fmt::format("{} is a number with signs that are no part of it", shown_cell(cell)),
         fmt::format("write {}, and the other numbers of the column so: digits and a decimal point alone",
                     plain_number(cell).value_or("")));
  }

  [[noreturn]] void fail_large(std::string_view cell) const {
    fail(fmt::format("{} overflows float32", shown_cell(cell)), "the largest float32 is about 3.4e38");
  }

  static bool is_decimal_comma(std::string_view cell) {
    std::string with_point(cell);
    std::erase(with_point, '.');
    std::replace(with_point.begin(), with_point.end(), ',', '.');
    return cell.find(',') != std::string_view::npos && to_number(with_point).kind == CellNumber::Kind::number;
  }

  // Targets are read as numbers until one is none; then as texts, all of them.
  void take_target(std::size_t target, std::string_view cell) {
    if (cell.empty()) fail("the cell is empty, expected a target", "remove the row");
    if (table_.target == Table::Target::texts) return;
    const CellNumber number = to_number(cell);
    if (number.kind == CellNumber::Kind::number) {
      const bool fits = std::abs(number.value) <= static_cast<double>(std::numeric_limits<std::int32_t>::max());
      if (!number.integer || !fits) table_.target = Table::Target::numbers;
      const std::size_t row = static_cast<std::size_t>(table_.rows) * columns_.targets.size();
      table_.numbers.resize(row + columns_.targets.size());
      table_.numbers[row + target] = number.value;
      return;
    }
    if (number.kind == CellNumber::Kind::infinite || number.kind == CellNumber::Kind::beyond_float) fail_large(cell);
    if (plain_number(cell)) fail_formatted(cell);
    if (kind_ == TargetKind::numbers) {
      fail(fmt::format("{} is no number, and the loss takes numbers", shown_cell(cell)),
           number.kind == CellNumber::Kind::missing ? "remove the row" : "for classes use softmax_cross_entropy");
    }
    table_.target = Table::Target::texts;
  }

  void take_text_target(std::string_view cell) {
    table_.codes.push_back(table_.texts.code_of(cell, [&] { return check_new_text(cell); }));
    if (table_.texts.entries().size() <= most_categories) return;
    fail(fmt::format("there are more than {} classes", with_commas(most_categories)),
         "a target of numbers has numbers alone");
  }

  // Among numbers, NA is no class.
  void check_text_targets() const {
    const Dictionary::Entry* missing = nullptr;
    for (const Dictionary::Entry& entry : table_.texts.entries()) {
      const CellNumber::Kind kind = to_number(entry.text).kind;
      if (kind == CellNumber::Kind::text) return;
      if (kind == CellNumber::Kind::missing && missing == nullptr) missing = &entry;
    }
    if (missing == nullptr) return;
    fail_data(fmt::format("{}, column '{}': {} says that the target is missing", missing->origin,
                          columns_.targets.front().text, shown_cell(missing->text)),
              "remove the row");
  }

  void take_weight(std::string_view cell) {
    const CellNumber number = to_number(cell);
    if (number.kind != CellNumber::Kind::number || number.value < 0) {
      fail(cell.empty() ? "the cell is empty, expected a weight"
                        : fmt::format("{} is no weight: weights are numbers of at least 0", shown_cell(cell)),
           "1 is the weight of an example without one");
    }
    table_.weights.push_back(static_cast<float>(number.value));
  }

  const spec::Csv& csv_;
  const TableColumns& columns_;
  TargetKind kind_;
  Table table_;
  // Where it is, for messages.
  const std::string* path_ = nullptr;
  const std::vector<std::string>* names_ = nullptr;
  const CsvReader* reader_ = nullptr;
  std::size_t column_ = 0;
};

}  // namespace

TableText open_table(const std::string& path) { return {path, read_text(path)}; }

TableColumns target_columns(const spec::Csv& csv) {
  TableColumns columns;
  columns.targets = csv.target;
  if (csv.weight) {
    columns.weight = csv.weight->text;
    columns.weight_place = csv.weight->place;
  }
  return columns;
}

TableColumns columns_of(const spec::Csv& csv, const std::vector<std::string>& header, const std::string& path) {
  TableColumns columns = target_columns(csv);
  for (const spec::ColumnName& target : columns.targets) {
    find_column(header, target.text, target.place, path, csv.header);
  }
  const auto is_target = [&](const std::string& name) {
    return std::any_of(columns.targets.begin(), columns.targets.end(),
                       [&](const spec::ColumnName& target) { return target.text == name; });
  };
  if (csv.inputs) {
    for (const spec::ColumnName& name : *csv.inputs) columns.inputs.push_back({name.text, false, name.place});
  } else {
    columns.only_these = true;
    for (std::size_t i = 0; i < header.size(); ++i) {
      if (is_target(header[i]) || (csv.weight && header[i] == columns.weight)) continue;
      if (header[i].empty()) {
        fail_data(fmt::format("column {} of '{}' has no name", i + 1, path),
                  i == 0 ? "pandas writes the numbers of rows so: save without them (index=False), or name the columns "
                           "to use, inputs: [...]"
                         : "name it in the header, or name the columns to use, inputs: [...]");
      }
      columns.inputs.push_back({header[i], false, {}});
    }
  }
  for (const spec::ColumnName& name : csv.categorical) {
    find_column(header, name.text, name.place, path, csv.header);
    for (TableColumns::Input& input : columns.inputs) {
      if (input.name == name.text) input.categorical = true;
    }
  }
  for (const auto& entry : csv.missing.columns) {
    find_column(header, entry.first.text, entry.first.place, path, csv.header);
  }
  for (TableColumns::Input& input : columns.inputs) input.missing = csv.missing.of(input.name, input.categorical);
  if (columns.inputs.empty()) {
    fail_data(fmt::format("'{}' has no column beside {}", path, shown_names(columns.targets)),
              "a model needs an input");
  }
  return columns;
}

std::vector<TextColumn> read_texts(const spec::Csv& csv, const TableText& file, const std::vector<std::string>& names) {
  const std::vector<std::string> header = header_of(csv, file);
  std::vector<TextColumn> columns;
  std::vector<std::size_t> at;
  for (const std::string& name : names) {
    at.push_back(find_column(header, name, {}, file.path, csv.header));
    columns.push_back({name, {}});
  }
  CsvReader reader(as_text(file.text), csv.delimiter.front(), file.path);
  if (csv.header) reader.next_record();
  std::vector<std::string> cells;
  while (reader.next_record()) {
    cells.clear();
    while (const auto cell = reader.next_cell()) cells.emplace_back(*cell);
    for (std::size_t i = 0; i < at.size(); ++i) columns[i].cells.push_back(at[i] < cells.size() ? cells[at[i]] : "");
  }
  file.text.check_intact();
  return columns;
}

std::string shown_names(const std::vector<spec::ColumnName>& columns) {
  std::vector<std::string> names;
  for (const spec::ColumnName& column : columns) names.push_back("'" + column.text + "'");
  return join(names, ", ");
}

Table read_table(const spec::Csv& csv, const std::vector<TableText>& files, const TableColumns& columns,
                 TargetKind kind) {
  if (columns.targets.size() > 1) kind = TargetKind::numbers;
  return TableReader(csv, columns, kind).read(files);
}

}  // namespace pmaptrain::data
