// Which columns a table has, and which of them a config names.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/tables/table.h"

namespace pmaptrain::data {
namespace {

constexpr std::size_t most_columns = std::size_t{1} << 20;

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

// Checks for a single column that another delimiter would split into several.
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

}  // namespace

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

std::vector<std::string> header_of(const Csv& csv, const TableText& file) {
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
                "set encoding: latin-1 or windows-1252, or save the file as UTF-8");
    }
    names.emplace_back(without_blanks(*cell));
  }
  if (file.lines.empty()) check_delimiter(names, csv.delimiter.front(), file);
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

TableColumns target_columns(const Csv& csv) {
  TableColumns columns;
  columns.text = csv.text;
  columns.targets = csv.target;
  if (csv.weight) {
    columns.weight = csv.weight->text;
    columns.weight_place = csv.weight->place;
  }
  return columns;
}

TableColumns columns_of(const Csv& csv, const std::vector<std::string>& header, const std::string& path,
                        const std::optional<ColumnName>& group) {
  TableColumns columns = target_columns(csv);
  columns.group = group;
  columns.others = csv.exclude;
  if (group) columns.others.push_back(*group);
  for (const ColumnName& other : columns.others) {
    find_column(header, other.text, other.place, path, csv.header);
  }
  for (const ColumnName& target : columns.targets) {
    find_column(header, target.text, target.place, path, csv.header);
  }
  const auto is_one_of = [](const std::vector<ColumnName>& names, const std::string& name) {
    return std::any_of(names.begin(), names.end(), [&](const ColumnName& one) { return one.text == name; });
  };
  if (csv.text) {
    find_column(header, csv.text->text, csv.text->place, path, csv.header);
    return columns;
  }
  if (csv.inputs) {
    for (const ColumnName& name : *csv.inputs) columns.inputs.push_back({name.text, false, name.place});
  } else {
    columns.only_these = true;
    for (std::size_t i = 0; i < header.size(); ++i) {
      if (is_one_of(columns.targets, header[i]) || is_one_of(columns.others, header[i])) continue;
      if (csv.weight && header[i] == columns.weight) continue;
      if (header[i].empty()) {
        fail_data(fmt::format("column {} of '{}' has no name", i + 1, path),
                  i == 0 ? "pandas writes the numbers of rows so: save without them (index=False), or name the columns "
                           "to use, inputs: [...]"
                         : "name it in the header, or name the columns to use, inputs: [...]");
      }
      columns.inputs.push_back({header[i], false, {}});
    }
  }
  for (const ColumnName& name : csv.categorical) {
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

std::vector<TextColumn> read_texts(const Csv& csv, const TableText& file, const std::vector<std::string>& names,
                                   const std::vector<SkippedRow>& skipped) {
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
  auto next_skipped = skipped.begin();
  for (std::int64_t row = 0; reader.next_record(); ++row) {
    const bool is_skipped = next_skipped != skipped.end() && next_skipped->row == row;
    cells.clear();
    try {
      while (const auto cell = reader.next_cell()) cells.emplace_back(*cell);
    } catch (const Error&) {
      if (!is_skipped) throw;
    }
    if (is_skipped) {
      reader.leave_record();
      ++next_skipped;
    }
    for (std::size_t i = 0; i < at.size(); ++i) columns[i].cells.push_back(at[i] < cells.size() ? cells[at[i]] : "");
  }
  file.text.check_intact();
  return columns;
}

std::string shown_names(const std::vector<ColumnName>& columns) {
  std::vector<std::string> names;
  names.reserve(columns.size());
  for (const ColumnName& column : columns) names.push_back("'" + column.text + "'");
  return join(names, ", ");
}

}  // namespace pmaptrain::data
