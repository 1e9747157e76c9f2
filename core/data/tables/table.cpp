#include "core/data/tables/table.h"

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
#include "core/data/file.h"
#include "core/data/tables/cell_faults.h"
#include "core/data/tables/json_rows.h"

namespace pmaptrain::data {
namespace {

// A column with more categories is an identifier or a number rather than a category, and a checkpoint holds them all.
constexpr std::size_t most_categories = std::size_t{1} << 16;
constexpr std::size_t longest_category = 1024;

constexpr const char* not_utf8_help = "set encoding: latin-1 or windows-1252, or save the file as UTF-8";

bool is_among(const std::vector<ColumnName>& texts, std::string_view text) {
  return std::any_of(texts.begin(), texts.end(), [&](const ColumnName& one) { return one.text == text; });
}

// Reads one table, file after file.
class TableReader {
 public:
  TableReader(const Csv& csv, const TableColumns& columns, TargetKind kind, std::vector<SkippedRow> left_out)
      : csv_(csv), columns_(columns), kind_(kind), left_out_(std::move(left_out)) {}

  Table read(const std::vector<TableText>& files) {
    table_.categories.resize(columns_.inputs.size());
    allocate_rows(files);
    for (const TableText& file : files) {
      try {
        about_file(file.path, [&] { read_file(file); });
      } catch (const Error&) {
        file.text.check_intact();  // a modified file would explain the error better
        throw;
      }
      file.text.check_intact();
    }
    if (table_.rows == 0 && !table_.skipped.empty() && !columns_.targets.empty()) {
      fail_data(fmt::format("no row of '{}' can be read: {}", files.front().path, table_.skipped.front().reason));
    }
    if (table_.rows == 0 && table_.skipped.empty()) {
      fail_data(fmt::format("'{}' has no rows{}", files.front().path, csv_.header ? " but its header" : ""));
    }
    if (table_.target == Table::Target::texts) {
      table_.numbers = {};
      record_ = 0;
      for (const TableText& file : files) read_text_targets(file);
      if (kind_ != TargetKind::whole && csv_.classes.empty()) check_text_targets();
    }
    sort_groups();
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
    table_.cells = allocate(rows * columns_.inputs.size() * Table::cell_bytes, fmt::format("'{}'", files.front().path));
    if (!columns_.targets.empty()) {
      const bool are_texts = kind_ == TargetKind::texts || kind_ == TargetKind::whole;
      table_.target = are_texts ? Table::Target::texts : Table::Target::integers;
      table_.numbers.reserve(are_texts ? 0 : rows * columns_.targets.size());
    }
  }

  // The meaning of each column of a file: the index of an input, of a target (numbered after the inputs), or one of
  // these constants.
  static constexpr std::size_t skipped = std::numeric_limits<std::size_t>::max(), weight = skipped - 1,
                               document = skipped - 2, first_target = skipped / 2;
  static bool is_target(std::size_t part) { return part >= first_target && part < document; }

  std::vector<std::size_t> parts_of(const std::vector<std::string>& names, const std::string& path) const {
    std::vector<std::size_t> parts(names.size(), skipped);
    const auto take = [&](const std::string& name, const Place& place, std::size_t part) {
      parts[find_column(names, name, place, path, csv_.header)] = part;
    };
    // A map by name, because a search for each of many inputs would take quadratic time.
    std::map<std::string_view, std::size_t> at;
    for (std::size_t i = 0; i < names.size(); ++i) at.emplace(names[i], i);
    for (std::size_t i = 0; i < columns_.inputs.size(); ++i) {
      const auto found = at.find(columns_.inputs[i].name);
      if (found == at.end()) take(columns_.inputs[i].name, columns_.inputs[i].place, i);  // which fails
      parts[found->second] = i;
    }
    for (std::size_t t = 0; t < columns_.targets.size(); ++t) {
      take(columns_.targets[t].text, columns_.targets[t].place, first_target + t);
    }
    if (!columns_.weight.empty()) take(columns_.weight, columns_.weight_place, weight);
    if (columns_.text) take(columns_.text->text, columns_.text->place, document);
    for (std::size_t i = 0; columns_.only_these && i < names.size(); ++i) {
      if (parts[i] != skipped || is_known(names[i])) continue;
      fail_data(
          fmt::format("'{}' has a column {}, which the first training file does not have", path, shown_cell(names[i])),
          "inputs: [...] names the columns to use");
    }
    return parts;
  }

  // Whether a column that is not read may be there.
  bool is_known(const std::string& name) const {
    return std::any_of(columns_.others.begin(), columns_.others.end(),
                       [&](const ColumnName& other) { return other.text == name; });
  }

  [[noreturn]] void fail(const std::string& what, std::string help) const {
    fail_data(fmt::format("'{}', line {}, column '{}': {}", *path_, reader_->line(), (*names_)[column_], what),
              std::move(help));
  }

  [[noreturn]] void fail(const CellFault& fault) const { fail(fault.what, fault.help); }

  // Calls `take(part, cell)` for each cell of each row, and checks that rows have a cell for each column.
  template <class Take>
  void for_each_row(const TableText& file, Take&& take) {
    CsvReader reader(as_text(file.text), csv_.delimiter.front(), file.path, file.lines);
    const std::vector<std::string> names = header_of(csv_, file);
    const std::vector<std::size_t> parts = parts_of(names, file.path);
    const auto& group = columns_.group;
    group_at_ = group ? find_column(names, group->text, group->place, file.path, csv_.header) : skipped;
    path_ = &file.path;
    faults_ = &file.faults;
    names_ = &names;
    reader_ = &reader;
    if (csv_.header) reader.next_record();
    for (; reader.next_record(); ++record_) take.row([&] { take_row(reader, parts, take); });
  }

  template <class Take>
  void take_row(CsvReader& reader, const std::vector<std::size_t>& parts, Take&& take) {
    column_ = 0;
    while (const std::optional<std::string_view> cell = reader.next_cell()) {
      if (column_ == parts.size()) fail_ragged(parts.size() + 1 + remaining(reader), parts.size());
      if (parts[column_] != skipped) take(parts[column_], *cell);
      if (column_ == group_at_) take.group(*cell);
      ++column_;
    }
    if (column_ < parts.size()) fail_ragged(column_, parts.size());
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
      } else if (part == document) {
        if (!is_utf8(cell)) table.fail("it is not UTF-8", not_utf8_help);
        table.table_.documents.emplace_back(cell);
      } else {
        table.take_input(part, cell);
      }
    }
    void group(std::string_view cell) const { table.take_group(cell); }
    template <class Read>
    void row(Read&& read) const {
      table.read_row(read);
    }
  };
  void read_file(const TableText& file) {
    table_.paths.push_back(file.path);
    for_each_row(file, TakeRow{*this});
  }

  struct TakeTarget {
    TableReader& table;
    void operator()(std::size_t part, std::string_view cell) const {
      if (is_target(part)) table.take_text_target(cell);
    }
    void group(std::string_view /*cell*/) const {}
    template <class Read>
    void row(Read&& read) const {
      table.is_skipped() ? table.reader_->leave_record() : read();
    }
  };
  void read_text_targets(const TableText& file) { for_each_row(file, TakeTarget{*this}); }

  // Reads a row, or with `on_error: skip` takes back what was read of one that is wrong.
  template <class Read>
  void read_row(Read&& read) {
    if (csv_.on_error == OnError::error) {
      read();
      check_categories();
      end_row();
      return;
    }
    const Table::Target target = table_.target;
    std::vector<std::size_t> categories;
    for (const Dictionary& dictionary : table_.categories) categories.push_back(dictionary.entries().size());
    const SkippedRow* const listed = listed_row();
    try {
      if (listed != nullptr) fail_data(listed->reason);
      const auto fault = faults_->find(reader_->line());
      if (fault != faults_->end()) fail_data(fault->second);
      read();
      end_row();
    } catch (const Error& error) {
      if (error.status() != ExitStatus::data) throw;
      table_.skipped.push_back({record_, error.diagnostics().front().message, {}, listed != nullptr});
      table_.target = target;
      const auto rows = static_cast<std::size_t>(table_.rows);
      table_.numbers.resize(std::min(table_.numbers.size(), rows * columns_.targets.size()));
      table_.weights.resize(std::min(table_.weights.size(), rows));
      table_.groups.resize(std::min(table_.groups.size(), rows));
      table_.documents.resize(std::min(table_.documents.size(), rows));
      for (std::size_t i = 0; i < categories.size(); ++i) table_.categories[i].keep(categories[i]);
      reader_->leave_record();
    }
    check_categories();
  }

  // Counts a row that was read, and says where it is.
  void end_row() {
    const std::size_t file = table_.paths.size() - 1;
    const auto& runs = table_.runs;
    const bool goes_on = !runs.empty() && runs.back().file == file &&
                         reader_->line() - runs.back().line == table_.rows - runs.back().first;
    if (!goes_on) table_.runs.push_back({table_.rows, reader_->line(), file});
    ++table_.rows;
  }

  // The record among the rows that are to be left out; records come in order.
  const SkippedRow* listed_row() {
    if (next_left_out_ == left_out_.size() || left_out_[next_left_out_].row != record_) return nullptr;
    return &left_out_[next_left_out_++];
  }

  // Whether the record is among the rows that were left out.
  bool is_skipped() {
    if (record_ == 0) next_skipped_ = 0;
    if (next_skipped_ == table_.skipped.size() || table_.skipped[next_skipped_].row != record_) return false;
    ++next_skipped_;
    return true;
  }

  void take_input(std::size_t input, std::string_view cell) {
    std::byte* const to = table_.cells.view.data() +
                          (static_cast<std::size_t>(table_.rows) * columns_.inputs.size() + input) * Table::cell_bytes;
    if (columns_.inputs[input].categorical) {
      const bool may_be_empty = columns_.inputs[input].missing == Missing::category;
      const std::uint32_t code = category(table_.categories[input], cell, may_be_empty);
      std::memcpy(to, &code, sizeof(code));
      return;
    }
    const CellNumber number = number_of_input(cell);
    double value = number.value;
    if (number.kind == CellNumber::Kind::missing && columns_.inputs[input].missing == Missing::mean) {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (number.kind != CellNumber::Kind::number) {
      fail_input(number, cell);
    }
    std::memcpy(to, &value, sizeof(value));
  }

  CellNumber number_of_input(std::string_view cell) const {
    const bool means_missing = is_among(csv_.missing_values, without_blanks(cell));
    return means_missing ? CellNumber{CellNumber::Kind::missing, 0, false} : to_number(cell);
  }

  // Empty cells that are a category are one without a text.
  std::uint32_t category(Dictionary& dictionary, std::string_view cell, bool may_be_empty) {
    const bool is_missing = cell.empty() || is_among(csv_.missing_categories, without_blanks(cell));
    if (is_missing && !may_be_empty) fail(missing_category_fault(cell));
    if (is_missing) cell = {};
    const std::uint32_t code = dictionary.code_of(cell, [&] { return check_new_text(cell); });
    if (dictionary.entries().size() > most_categories) overflowing_ = column_;
    return code;
  }

  // A matter of the column, and not of the row.
  void check_categories() {
    if (!overflowing_) return;
    column_ = *overflowing_;
    fail(fmt::format("there are more than {} categories", with_commas(most_categories)),
         "a column with a text of its own in each row cannot be learned from: leave it out with inputs: [...]");
  }

  // A text that becomes a name.
  void check_text(std::string_view cell) const {
    if (!is_utf8(cell)) fail("it is not UTF-8", not_utf8_help);
    if (cell.size() > longest_category) {
      fail(fmt::format("a text of {} bytes, {}, cannot be a category or a class", cell.size(), shown_cell(cell)),
           fmt::format("the longest has {} bytes", longest_category));
    }
  }

  // The same for a new text. Returns its position in the file.
  std::string check_new_text(std::string_view cell) const {
    check_text(cell);
    return fmt::format("'{}', line {}", *path_, reader_->line());
  }

  [[noreturn]] void fail_input(const CellNumber& number, std::string_view cell) const {
    CellFault fault = input_fault(number, cell, (*names_)[column_], csv_, columns_.targets.empty());
    const bool is_text = number.kind == CellNumber::Kind::text;
    if (is_text && !csv_.header && table_.rows == 0) {
      fault.help = "if the first line has the names of the columns, set header: true";
    }
    fail(fault);
  }

  // Targets are read as numbers until one is none; then as texts, all of them.
  void take_target(std::size_t target, std::string_view cell) {
    if (csv_.label_separator) return check_text(cell);  // an empty cell has no label
    if (cell.empty()) fail(empty_target_fault(kind_ != TargetKind::numbers && kind_ != TargetKind::labels));
    CellNumber number = to_number(cell);
    if (const auto truth = kind_ == TargetKind::labels ? truth_of(cell) : std::nullopt) {
      number = {CellNumber::Kind::number, *truth ? 1.0 : 0.0, true};
    }
    if (kind_ == TargetKind::whole && number.kind != CellNumber::Kind::number) {
      fail(fmt::format("{} is no number, but the classes of the training split are", shown_cell(cell)),
           "the targets of all splits must be of one kind");
    }
    if (table_.target == Table::Target::texts) {
      check_text(cell);
      return;
    }
    if (number.kind == CellNumber::Kind::number) {
      const bool fits = std::abs(number.value) <= static_cast<double>(std::numeric_limits<std::int32_t>::max());
      if (!number.integer || !fits) table_.target = Table::Target::numbers;
      const std::size_t row = static_cast<std::size_t>(table_.rows) * columns_.targets.size();
      table_.numbers.resize(row + columns_.targets.size());
      table_.numbers[row + target] = number.value;
      return;
    }
    if (number.kind == CellNumber::Kind::infinite || number.kind == CellNumber::Kind::beyond_float) {
      fail(large_fault(cell));
    }
    if (kind_ == TargetKind::numbers || kind_ == TargetKind::labels) {
      if (plain_number(cell)) fail(formatted_fault(cell));
      fail(target_fault(number, cell, columns_.targets.size() > 1, kind_ == TargetKind::labels));
    }
    // Left out, it does not make classes of numbers.
    if (number.kind == CellNumber::Kind::missing && csv_.on_error == OnError::skip) {
      fail(fmt::format("{} says that the target is missing", shown_cell(cell)), "remove the row");
    }
    check_text(cell);
    table_.target = Table::Target::texts;
  }

  void take_text_target(std::string_view cell) {
    if (kind_ == TargetKind::whole) return take_whole_target(cell);
    table_.codes.push_back(table_.texts.code_of(cell, [&] { return check_new_text(cell); }));
    if (table_.texts.entries().size() <= most_categories) return;
    if (plain_number(cell)) fail(formatted_fault(cell));
    fail(fmt::format("there are more than {} classes", with_commas(most_categories)),
         "a target of numbers has numbers alone");
  }

  void take_whole_target(std::string_view cell) {
    const double number = to_number(cell).value;
    const bool is_whole = number == std::trunc(number) && std::abs(number) < 1e15;
    const std::string name = is_whole ? std::to_string(static_cast<std::int64_t>(number)) : std::string(cell);
    table_.codes.push_back(table_.texts.code_of(name, [&] { return check_new_text(cell); }));
  }

  // Among numbers, NA is no class, and neither is a number with signs.
  void check_text_targets() const {
    const Dictionary::Entry *missing = nullptr, *formatted = nullptr;
    for (const Dictionary::Entry& entry : table_.texts.entries()) {
      const CellNumber::Kind kind = to_number(entry.text).kind;
      const bool has_signs = kind == CellNumber::Kind::text && plain_number(entry.text);
      if (kind == CellNumber::Kind::text && !has_signs) return;
      if (has_signs && formatted == nullptr) formatted = &entry;
      if (kind == CellNumber::Kind::missing && missing == nullptr) missing = &entry;
    }
    if (formatted != nullptr) {
      CellFault fault = formatted_fault(formatted->text);
      fail_data(fmt::format("{}, column '{}': {}", formatted->origin, columns_.targets.front().text, fault.what),
                std::move(fault.help));
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

  void take_group(std::string_view cell) {
    if (cell.empty()) fail("the cell is empty, expected the group of the row", "write one; or remove the row");
    table_.groups.push_back(groups_.code_of(cell, [] { return std::string(); }));
  }

  // Numbers groups in the order of their texts, whatever the order of rows, without those of skipped rows alone.
  void sort_groups() {
    const std::vector<Dictionary::Entry>& entries = groups_.entries();
    std::vector<std::uint32_t> order = table_.groups, number(entries.size());
    std::sort(order.begin(), order.end());
    order.erase(std::unique(order.begin(), order.end()), order.end());
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return entries[a].text < entries[b].text; });
    for (std::uint32_t i = 0; i < order.size(); ++i) number[order[i]] = i;
    for (std::uint32_t& group : table_.groups) group = number[group];
  }

  const Csv& csv_;
  const TableColumns& columns_;
  TargetKind kind_;
  Table table_;
  // Where it is, for messages.
  const std::string* path_ = nullptr;
  const std::map<std::int64_t, std::string>* faults_ = nullptr;  // of the file
  const std::vector<std::string>* names_ = nullptr;
  CsvReader* reader_ = nullptr;
  std::size_t column_ = 0, group_at_ = skipped;
  std::int64_t record_ = 0;
  Dictionary groups_;
  const std::vector<SkippedRow> left_out_;
  std::size_t next_left_out_ = 0, next_skipped_ = 0;
  std::optional<std::size_t> overflowing_;  // a column of too many categories
};

}  // namespace

std::string Table::line_of(std::int64_t row) const {
  const auto after =
      std::upper_bound(runs.begin(), runs.end(), row, [](std::int64_t at, const Run& run) { return at < run.first; });
  if (after == runs.begin()) return {};
  const Run& run = *std::prev(after);
  return fmt::format("'{}', line {}", paths[run.file], run.line + row - run.first);
}

TableText open_table(const Csv& csv, const std::string& path) {
  return about_file(path, [&]() -> TableText {
    if (!has_json_lines(path)) return {path, read_text(path, csv.encoding)};
    if (!csv.header) {
      fail_data(fmt::format("'{}' has JSON lines, whose columns have names, and header is false", path),
                "remove header: false");
    }
    return rows_of_json(path, read_text(path), csv.delimiter.front(), csv.text ? csv.text->text : std::string(),
                        csv.on_error);
  });
}

Table read_table(const Csv& csv, const std::vector<TableText>& files, const TableColumns& columns, TargetKind kind,
                 std::vector<SkippedRow> left_out) {
  if (columns.targets.size() > 1 && kind != TargetKind::labels) kind = TargetKind::numbers;
  return TableReader(csv, columns, kind, std::move(left_out)).read(files);
}

}  // namespace pmaptrain::data
