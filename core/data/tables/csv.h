// Datasets of tables in text files, and what their encoding is.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/tables/table.h"

namespace pmaptrain::data {

// The encoding of a training split, without the replacements of missing values.
Encoding learn(const Csv& csv, const TableColumns& columns, const Table& table, bool numeric);

// The rows of one split. Inputs are f32[width]: a number for each column of numbers, one for each category of the
// others, or for all of them (Encoding::Column::numbered; exact, for there are fewer than f32 tells apart). Targets are
// labels (i32) or numbers (f32[targets]).
class TableDataset : public Dataset {
 public:
  // `encoding` has the input columns, and the names of the classes if targets are texts. Throws Error (data) for an
  // unknown class, and for an unknown category unless these are ignored. `csv` names the target columns, `path` is a
  // file of the split. Several targets are always numbers; a text of labels becomes a number for each, 0 or 1.
  TableDataset(Table table, const Encoding& encoding, const Csv& csv, const std::string& path, bool numeric);

  std::int64_t size() const override { return table_.rows; }
  Field input() const override { return input_; }
  Field target() const override { return target_; }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override;
  bool rounds_inputs() const override { return true; }
  bool rounds_targets() const override { return !exact_.empty(); }
  void read_exact_input(std::int64_t index, double* input) const override;
  void read_exact_target(std::int64_t index, double* target) const override;
  std::optional<std::pair<std::int64_t, std::int64_t>> label_range() const override { return range_; }
  bool is_weighted() const override { return !table_.weights.empty(); }
  float weight(std::int64_t index) const override {
    return is_weighted() ? table_.weights[static_cast<std::size_t>(index)] : 1.0F;
  }

  std::string line_of(std::int64_t index) const override { return table_.line_of(index); }

  // The texts of a column of texts, by row, which it has no longer.
  std::vector<std::string> take_documents() { return std::move(table_.documents); }
  // By row, the number of its group; empty without a column of groups.
  const std::vector<std::uint32_t>& groups() const { return table_.groups; }
  // The categories that the encoding does not have, by column, with their cells.
  struct UnknownCells {
    std::string column;
    std::vector<std::pair<std::string, std::int64_t>> cells;
  };
  const std::vector<UnknownCells>& unknown() const { return unknown_; }
  // How many numbers are missing, by column; 0 for categories.
  const std::vector<std::int64_t>& missing() const { return missing_; }
  // The means of `rows`, a part of this dataset, without missing values, for each column whose missing numbers are
  // replaced by the mean; empty for other columns. Throws Error (data) for a column without values.
  std::vector<std::optional<double>> means_of(const Dataset& rows, const Encoding& encoding,
                                              const MissingCells& missing) const;
  // Sets the replacements of missing values.
  void fill_missing(const Encoding& encoding);

 private:
  // The numbers of an input that a column has: one, or one for each category that is not numbered.
  struct Column {
    std::size_t first = 0;
    std::uint32_t categories = 0;  // 0: a number
    double missing = 0;
    bool numbered = false;
  };
  const std::byte* row(std::int64_t index) const;
  template <class T>
  void read_input(std::int64_t index, T* input) const;
  void encode(const Encoding& encoding, Unknown unknown);
  void count_missing();
  void encode_targets(const Encoding& encoding, const Csv& csv, bool numeric);
  void encode_labels(const Encoding& encoding, const Csv& csv);

  Table table_;
  Field input_, target_;
  std::vector<Column> columns_;
  std::vector<UnknownCells> unknown_;
  std::vector<std::int64_t> missing_;
  std::vector<std::int32_t> labels_;
  std::vector<float> values_;
  std::vector<double> exact_;  // the same as the file has them
  std::optional<std::pair<std::int64_t, std::int64_t>> range_;
};

// The tables of the splits.
struct CsvSource {
  std::map<Split, std::shared_ptr<TableDataset>> splits;
  Encoding encoding;
  std::vector<std::string> notes;
};

// Opens the splits that `wants` names. Without `known` the encoding is learned from the training split, which is then
// among them. Rows that a run has left out are left out again.
struct TableMeaning {
  bool numeric_targets = false;
  // Whole numbers that are no labels, because of a point or a sign, are classes: -1 and 1, or a sequence from 0 or 1.
  bool numbers_name_classes = false;
  std::optional<ColumnName> group = {};  // the column of the groups of the training split
  bool numbers_categories = false;       // see Encoding::Column::numbered
};
CsvSource open_csv(const Csv& csv, const std::function<bool(Split)>& wants, const Encoding* known,
                   const TableMeaning& meaning, const Skipped& left_out);

// The rows of another file, with the input columns of `known`, the encoding of a checkpoint. There are no targets, so
// read() does not write `target`. Other columns of the file are ignored.
struct InputTable {
  std::shared_ptr<const Dataset> dataset;
  std::vector<std::string> notes;
  std::vector<SkippedRow> skipped;  // any number of them
};
// `tokenizer`: of a column of texts; null: bytes.
InputTable open_inputs(const Csv& csv, const std::string& path, const Encoding& known,
                       std::shared_ptr<const tokenizers::Tokenizer> tokenizer = nullptr);

}  // namespace pmaptrain::data
