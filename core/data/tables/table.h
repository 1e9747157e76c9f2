// The rows of tables in text files, as numbers and as codes of texts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/data/skipped.h"
#include "core/data/tables/csv_reader.h"
#include "core/data/tables/csv_source.h"

namespace pmaptrain::data {

// Different texts, numbered from 0 in the order in which they occur first.
class Dictionary {
 public:
  struct Entry {
    std::string text;
    std::string origin;  // "'file', line 7": where it occurs first
  };
  // The number of `text`; `origin()` is called for a new one, which is not taken where it throws.
  template <class Origin>
  std::uint32_t code_of(std::string_view text, Origin&& origin) {
    const auto found = codes_.find(text);
    if (found != codes_.end()) return found->second;
    const auto code = static_cast<std::uint32_t>(entries_.size());
    entries_.push_back({std::string(text), origin()});
    codes_.emplace(text, code);
    return code;
  }
  const std::vector<Entry>& entries() const { return entries_; }
  // Forgets all but the first `count`.
  void keep(std::size_t count) {
    for (; entries_.size() > count; entries_.pop_back()) codes_.erase(entries_.back().text);
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> codes_;
  std::vector<Entry> entries_;
};

// The columns that are read from each row.
struct TableColumns {
  struct Input {
    std::string name;
    bool categorical = false;
    Place place = {};  // where the config names it
    Missing missing = Missing::error;
  };
  std::vector<Input> inputs;
  bool only_these = false;          // a file may have no column beside these and those below
  std::vector<ColumnName> targets;  // none: none is read
  std::string weight;               // empty: none
  Place weight_place;
  std::optional<ColumnName> group;  // none: none is read
  std::optional<ColumnName> text;   // a column of texts
  std::vector<ColumnName> others;   // that a file may have as well
};

// A file, and its text.
struct TableText {
  std::string path;
  Bytes text;
  std::vector<std::int64_t> lines = {};  // by record, where it is in the file; empty: where it is in the text
  // Of JSON lines with `on_error: skip`: why a line cannot be read, whose record has empty cells.
  std::map<std::int64_t, std::string> faults = {};
};
// Throws Error (data) for a file that cannot be read, or is no text in the encoding of `csv`.
TableText open_table(const Csv& csv, const std::string& path);

// The names of the columns: the header, or their numbers. Throws Error (data) for a header that cannot be one: names
// that occur twice, another delimiter.
std::vector<std::string> header_of(const Csv& csv, const TableText& file);
// The index of a column among these names. If there is none, throws Error (data) at `place`, with the nearest name.
std::size_t find_column(const std::vector<std::string>& names, const std::string& name, const Place& place,
                        const std::string& path, bool header);
// The target and the weight that the config names, without inputs.
TableColumns target_columns(const Csv& csv);
// The columns as the config describes them, completed by the header of the first training file. `group` is the column
// of the groups of data.validation.
TableColumns columns_of(const Csv& csv, const std::vector<std::string>& header, const std::string& path,
                        const std::optional<ColumnName>& group = std::nullopt);

struct Table {
  std::int64_t rows = 0;
  // Where rows are: from row `first` on, in file `file` of `paths`, row r begins in line `line` + r - first.
  struct Run {
    std::int64_t first = 0, line = 0;
    std::size_t file = 0;
  };
  std::vector<Run> runs;
  std::vector<std::string> paths;
  // "'t.csv', line 7"
  std::string line_of(std::int64_t row) const;
  std::vector<SkippedRow> skipped;  // with `on_error: skip`; all else is of the others
  // f64 [rows, inputs]. A missing value is NaN; a category is stored as its code, in the first bytes.
  static constexpr std::size_t cell_bytes = sizeof(double);
  Memory cells;
  std::vector<Dictionary> categories;  // by input; empty for numbers

  enum class Target { none, integers, numbers, texts };
  Target target = Target::none;
  std::vector<double> numbers;       // [rows, targets], of targets that are numbers
  std::vector<std::uint32_t> codes;  // of targets that are texts
  Dictionary texts;
  std::vector<float> weights;          // none without a weight column
  std::vector<std::string> documents;  // of a column of texts
  // By row, the number of its group among the sorted ones. None without a column of groups.
  std::vector<std::uint32_t> groups;
};

// Whether targets are read as numbers alone, as texts alone, or as texts where one is no number; or as whole numbers
// that name classes: 1.0 and 1 are the class '1'; or as numbers for labels, which are written in words as well.
enum class TargetKind { numbers, texts, either, whole, labels };

// The texts of some columns as they are, by row, also of those that were left out as far as they can be read. Throws
// Error (data) for a column that the file does not have.
struct TextColumn {
  std::string name;
  std::vector<std::string> cells;
};
std::vector<TextColumn> read_texts(const Csv& csv, const TableText& file, const std::vector<std::string>& names,
                                   const std::vector<SkippedRow>& skipped);

// "'y'", "'a', 'b'"
std::string shown_names(const std::vector<ColumnName>& columns);

// The rows of the files, one after another. Several targets are numbers, whatever the kind. Throws Error (data), with
// file, line and column, for a cell that is not what its column takes.
// With `on_error: skip` the rows `left_out`, in their order, are left out whatever they hold.
Table read_table(const Csv& csv, const std::vector<TableText>& files, const TableColumns& columns, TargetKind kind,
                 std::vector<SkippedRow> left_out = {});

}  // namespace pmaptrain::data
