#include "core/data/tables/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/parallel.h"
#include "core/data/tables/class_names.h"
#include "core/data/tables/other_rows.h"
#include "core/data/tables/text_rows.h"

namespace pmaptrain::data {
namespace {

// Limits of a table's names in state.json.
constexpr std::int64_t most_names = std::int64_t{1} << 21, most_name_bytes = std::int64_t{16} << 20;

// The code of a category that the training split does not have and that counts as missing.
constexpr std::uint32_t no_category = std::numeric_limits<std::uint32_t>::max();

enum class TextKind { category, category_or_none, class_name };

// The place of each of some texts among them.
class Positions {
 public:
  // `names` must outlive it.
  explicit Positions(const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < names.size(); ++i) at_.emplace(names[i], i);
  }
  std::optional<std::size_t> of(std::string_view name) const {
    const auto found = at_.find(name);
    return found == at_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::unordered_map<std::string_view, std::size_t> at_;
};

// `listed`: the config lists the names.
[[noreturn]] void fail_unknown(const Dictionary::Entry& entry, std::vector<std::string> names,
                               const std::string& column, TextKind kind, bool listed) {
  const bool is_class = kind == TextKind::class_name;
  if (listed) {
    fail_data(fmt::format("{}, column '{}': {} is a class that classes does not list", entry.origin, column,
                          shown_cell(entry.text)),
              "add it to classes, or remove the row");
  }
  std::string help = "remove the row, or add one like it to the training split";
  std::replace(names.begin(), names.end(), std::string(), std::string("empty cells"));
  if (names.size() <= 12) help = fmt::format("it has {}", join(names, ", "));
  if (!is_class) help += "; unknown: ignore takes it as none of them";
  const std::string found = entry.text.empty() ? "an empty cell" : shown_cell(entry.text);
  fail_data(fmt::format("{}, column '{}': {} is a {} that the training split does not have", entry.origin, column,
                        found, is_class ? "class" : "category"),
            std::move(help));
}

// The position in `names` of each text of the dictionary. Throws Error (data) for one that is not among them, unless it
// may be none.
std::vector<std::uint32_t> positions_of(const Dictionary& dictionary, const std::vector<std::string>& names,
                                        const std::string& column, TextKind kind, bool listed = false) {
  const Positions known(names);
  std::vector<std::uint32_t> positions;
  for (const Dictionary::Entry& entry : dictionary.entries()) {
    const std::optional<std::size_t> at = known.of(entry.text);
    if (!at && kind != TextKind::category_or_none) fail_unknown(entry, names, column, kind, listed);
    positions.push_back(at ? static_cast<std::uint32_t>(*at) : no_category);
  }
  return positions;
}

TableColumns columns_of(const Csv& csv, const Encoding& known) {
  if (known.columns.empty() && !csv.text) {
    fail_data("the checkpoint is of a run whose data was no table, so it does not say which columns are inputs",
              "evaluate it on data like its own");
  }
  TableColumns columns = target_columns(csv);
  for (const Encoding::Column& column : known.columns) {
    const bool is_categorical = !column.categories.empty();
    if (!is_categorical && !column.missing && csv.missing.of(column.name, false) == Missing::mean) {
      fail_data(fmt::format("missing asks for the mean of column '{}', which the checkpoint does not have: the run was "
                            "trained without missing numbers in it",
                            column.name),
                "fill the cells, or train a run with missing: fill");
    }
    columns.inputs.push_back({column.name, is_categorical, {}, csv.missing.of(column.name, is_categorical)});
  }
  return columns;
}

const Csv::Files& files_of(const Csv& csv, Split split) {
  return split == Split::train ? csv.train : split == Split::validation ? *csv.validation : *csv.test;
}

bool has(const Csv& csv, Split split) {
  return split == Split::train || (split == Split::validation ? csv.validation.has_value() : csv.test.has_value());
}

// `first`: the first training file where it is open already, for its header.
Table read_split(const Csv& csv, Split split, const TableColumns& columns, TargetKind kind, const Skipped& left_out,
                 std::optional<TableText> first = std::nullopt) {
  std::vector<TableText> files;
  for (const std::string& path : files_of(csv, split)) {
    const bool is_open = split == Split::train && files.empty() && first;
    files.push_back(is_open ? std::move(*first) : open_table(csv, path));
  }
  TableColumns own = columns;
  if (split != Split::train) own.group.reset();
  return read_table(csv, files, own, kind, of_split(left_out, split));
}

// Reads the targets of a split again, which were read as numbers, where those of the training split are classes.
void read_as_classes(const Csv& csv, const TableColumns& columns, Split split, const Skipped& left_out, TargetKind kind,
                     Table& table) {
  if (table.target != Table::Target::texts) table = read_split(csv, split, columns, kind, left_out);
}

void check_targets_are_numbers(const Table& table, const std::string& column) {
  if (table.target != Table::Target::texts) return;
  const auto& entries = table.texts.entries();
  const auto text = std::find_if(entries.begin(), entries.end(), [](const Dictionary::Entry& entry) {
    return to_number(entry.text).kind != CellNumber::Kind::number;
  });
  fail_data(fmt::format("{}, column '{}': {} is a class, but the targets of the training split are numbers",
                        text->origin, column, shown_cell(text->text)),
            "the targets of all splits must be of one kind");
}

}  // namespace

Encoding learn(const Csv& csv, const TableColumns& columns, const Table& table, bool numeric) {
  Encoding encoding;
  std::int64_t names = 0, bytes = 0;
  const auto count = [&](const std::string& name) {
    ++names;
    bytes += std::ssize(name);
  };
  for (std::size_t i = 0; i < columns.inputs.size(); ++i) {
    encoding.columns.push_back({columns.inputs[i].name, sorted_texts(table.categories[i]), {}});
  }
  encoding.classes = classes_of(csv, table);
  // Several targets of a loss of classes are labels, which have the names of their columns.
  if (csv.target.size() > 1 && !numeric) {
    for (const ColumnName& column : csv.target) encoding.classes.push_back(column.text);
  }
  for (const Encoding::Column& column : encoding.columns) {
    count(column.name);
    std::for_each(column.categories.begin(), column.categories.end(), count);
  }
  std::for_each(encoding.classes.begin(), encoding.classes.end(), count);
  if (names > most_names || bytes > most_name_bytes) {
    fail_data(
        fmt::format("columns, categories and classes have {} names of {} bytes; a checkpoint holds at most {} of "
                    "{} bytes",
                    with_commas(names), with_commas(bytes), with_commas(most_names), with_commas(most_name_bytes)),
        "inputs: [...] names the columns to use");
  }
  return encoding;
}

TableDataset::TableDataset(Table table, const Encoding& encoding, const Csv& csv, const std::string& path, bool numeric)
    : table_(std::move(table)) {
  const std::vector<ColumnName>& targets = csv.target;
  encode(encoding, csv.unknown);
  count_missing();
  encode_targets(encoding, csv, numeric || targets.size() > 1);
  target_.origin = fmt::format("{} {} of '{}'", targets.size() > 1 ? "columns" : "column", shown_names(targets), path);
  fill_missing(encoding);
}

void TableDataset::encode(const Encoding& encoding, Unknown unknown) {
  const TextKind kind = unknown == Unknown::ignore ? TextKind::category_or_none : TextKind::category;
  std::size_t width = 0;
  for (const Encoding::Column& column : encoding.columns) {
    columns_.push_back({width, static_cast<std::uint32_t>(column.categories.size()), 0, column.numbered});
    width += column.width();
  }
  input_ = {DType::f32, {static_cast<std::int64_t>(width)}};
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].categories == 0) continue;
    const std::vector<std::uint32_t> positions =
        positions_of(table_.categories[i], encoding.columns[i].categories, encoding.columns[i].name, kind);
    std::vector<std::int64_t> counts(positions.size());  // of those that are none
    for (std::int64_t r = 0; r < table_.rows; ++r) {
      std::byte* const cell =
          table_.cells.view.data() + (static_cast<std::size_t>(r) * columns_.size() + i) * Table::cell_bytes;
      std::uint32_t code = 0;
      std::memcpy(&code, cell, sizeof(code));
      std::memcpy(cell, &positions[code], sizeof(code));
      if (positions[code] == no_category) ++counts[code];
    }
    UnknownCells unknown_here{encoding.columns[i].name, {}};
    for (std::size_t code = 0; code < counts.size(); ++code) {
      if (counts[code] > 0) unknown_here.cells.emplace_back(table_.categories[i].entries()[code].text, counts[code]);
    }
    std::stable_sort(unknown_here.cells.begin(), unknown_here.cells.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    if (!unknown_here.cells.empty()) unknown_.push_back(std::move(unknown_here));
  }
  table_.categories.clear();
}

void TableDataset::count_missing() {
  missing_.resize(columns_.size());
  for (std::int64_t r = 0; r < table_.rows; ++r) {
    const std::byte* const cells = row(r);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      double value = 0;
      std::memcpy(&value, cells + i * Table::cell_bytes, sizeof(value));
      if (columns_[i].categories == 0 && std::isnan(value)) ++missing_[i];
    }
  }
}

void TableDataset::encode_labels(const Encoding& encoding, const Csv& csv) {
  const std::vector<std::string>& names = encoding.classes;
  const Positions known(names);
  std::vector<std::vector<std::size_t>> of_cells;
  for (const Dictionary::Entry& entry : table_.texts.entries()) {
    std::vector<std::size_t>& labels = of_cells.emplace_back();
    for (std::string& label : labels_in(entry.text, *csv.label_separator)) {
      const std::optional<std::size_t> at = known.of(label);
      if (!at) {
        fail_unknown({std::move(label), entry.origin}, names, csv.target.front().text, TextKind::class_name,
                     !csv.classes.empty());
      }
      labels.push_back(*at);
    }
  }
  values_.assign(table_.codes.size() * names.size(), 0.0F);
  for (std::size_t row = 0; row < table_.codes.size(); ++row) {
    for (const std::size_t label : of_cells[table_.codes[row]]) values_[row * names.size() + label] = 1.0F;
  }
}

void TableDataset::encode_targets(const Encoding& encoding, const Csv& csv, bool numeric) {
  const std::vector<ColumnName>& targets = csv.target;
  if (table_.target == Table::Target::texts && csv.label_separator) {
    encode_labels(encoding, csv);
  } else if (table_.target == Table::Target::texts) {
    const std::vector<std::uint32_t> positions =
        positions_of(table_.texts, encoding.classes, targets.front().text, TextKind::class_name, !csv.classes.empty());
    for (const std::uint32_t code : table_.codes) labels_.push_back(static_cast<std::int32_t>(positions[code]));
  } else if (table_.target == Table::Target::integers && !numeric) {
    for (const double number : table_.numbers) labels_.push_back(static_cast<std::int32_t>(number));
  } else {
    for (const double number : table_.numbers) values_.push_back(static_cast<float>(number));
    exact_ = std::move(table_.numbers);
  }
  if (table_.target == Table::Target::none) {
    target_ = no_target();
  } else {
    target_.dtype = values_.empty() ? DType::i32 : DType::f32;
    const auto width = csv.label_separator ? std::ssize(encoding.classes) : std::ssize(targets);
    target_.shape = values_.empty() ? Shape{} : Shape{width};
  }
  if (!labels_.empty()) {
    const auto [low, high] = std::minmax_element(labels_.begin(), labels_.end());
    range_ = {*low, *high};
  }
  table_.codes = {};
  table_.numbers = {};
}

const std::byte* TableDataset::row(std::int64_t index) const {
  return table_.cells.view.data() + static_cast<std::size_t>(index) * columns_.size() * Table::cell_bytes;
}

void TableDataset::read(std::int64_t index, std::byte* input, std::byte* target) const {
  const auto i = static_cast<std::size_t>(index);
  if (!labels_.empty()) std::memcpy(target, &labels_[i], sizeof(labels_[i]));
  if (!values_.empty()) std::memcpy(target, values_.data() + i * target_.bytes() / sizeof(float), target_.bytes());
  if (input != nullptr) read_input(index, reinterpret_cast<float*>(input));
}

template <class T>
void TableDataset::read_input(std::int64_t index, T* input) const {
  const std::byte* cell = row(index);
  for (const Column& column : columns_) {
    T* const to = input + column.first;
    if (column.categories == 0) {
      double value = 0;
      std::memcpy(&value, cell, sizeof(value));
      *to = static_cast<T>(std::isnan(value) ? column.missing : value);
    } else {
      std::uint32_t category = 0;
      std::memcpy(&category, cell, sizeof(category));
      if (column.numbered) {
        *to = static_cast<T>(category == no_category ? 0 : category + 1);
        cell += Table::cell_bytes;
        continue;
      }
      std::fill_n(to, column.categories, T{0});
      if (category != no_category) to[category] = T{1};
    }
    cell += Table::cell_bytes;
  }
}

void TableDataset::read_exact_input(std::int64_t index, double* input) const { read_input(index, input); }

void TableDataset::read_exact_target(std::int64_t index, double* target) const {
  const auto count = static_cast<std::size_t>(numel(target_.shape));
  std::copy_n(exact_.data() + static_cast<std::size_t>(index) * count, count, target);
}

std::vector<std::optional<double>> TableDataset::means_of(const Dataset& rows, const Encoding& encoding,
                                                          const MissingCells& missing) const {
  std::vector<std::size_t> asked;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const bool is_number = columns_[i].categories == 0;
    if (is_number && missing.of(encoding.columns[i].name, false) == Missing::mean) asked.push_back(i);
  }
  std::vector<std::optional<double>> means(columns_.size());
  if (asked.empty()) return means;
  std::vector<double> sums(columns_.size());
  std::vector<std::int64_t> counts(columns_.size());
  for (std::int64_t r = 0; r < rows.size(); ++r) {
    const std::byte* const cells = row(rows.index_in_source(r));
    for (const std::size_t i : asked) {
      double value = 0;
      std::memcpy(&value, cells + i * Table::cell_bytes, sizeof(value));
      if (std::isnan(value)) continue;
      sums[i] += encoding.exact ? value : static_cast<double>(static_cast<float>(value));
      ++counts[i];
    }
  }
  for (const std::size_t i : asked) {
    if (counts[i] == 0) {
      fail_data(
          fmt::format("column '{}' of the training split has no value, so it has no mean", encoding.columns[i].name),
          "leave it out: inputs: [...] names the columns to use");
    }
    means[i] = sums[i] / static_cast<double>(counts[i]);
  }
  return means;
}

void TableDataset::fill_missing(const Encoding& encoding) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    columns_[i].missing = encoding.columns[i].missing.value_or(0);
  }
}

CsvSource open_csv(const Csv& csv, const std::function<bool(Split)>& wants, const Encoding* known,
                   const TableMeaning& meaning, const Skipped& left_out) {
  const auto& [numeric, numbers_name_classes, group, numbers_categories] = meaning;
  std::optional<TableText> first;
  if (known == nullptr) first = open_table(csv, csv.train.front());
  TableColumns columns = first ? columns_of(csv, header_of(csv, *first), first->path, group) : columns_of(csv, *known);
  columns.group = group;
  TargetKind kind = numeric ? TargetKind::numbers : TargetKind::either;
  const bool named_columns = csv.target.size() > 1;  // whose names are those of the labels
  const std::vector<std::string> classes = known != nullptr ? known->classes : texts_of(csv.classes);
  if (csv.label_separator) {
    kind = TargetKind::texts;
  } else if (named_columns && !numeric) {
    kind = TargetKind::labels;
  } else if (!classes.empty() && !named_columns) {
    kind = std::all_of(classes.begin(), classes.end(), is_whole) ? TargetKind::whole : TargetKind::texts;
  }
  std::map<Split, Table> tables;
  std::vector<Split> wanted;
  for (const Split split : all_splits) {
    if (!has(csv, split) || !wants(split)) continue;
    wanted.push_back(split);
    tables[split] = {};
  }
  for_each_item(std::ssize(wanted), [&](std::int64_t i) {
    const Split split = wanted[static_cast<std::size_t>(i)];
    tables.at(split) = read_split(csv, split, columns, kind, left_out,
                                  split == Split::train ? std::exchange(first, std::nullopt) : std::nullopt);
  });
  if (known == nullptr && classes.empty()) {
    const bool are_whole =
        numbers_name_classes && !csv.label_separator && !named_columns && name_classes(tables.at(Split::train));
    if (!named_columns) kind = are_whole ? TargetKind::whole : TargetKind::texts;
    if (are_whole) read_as_classes(csv, columns, Split::train, left_out, kind, tables.at(Split::train));
  }
  CsvSource source;
  source.encoding = known != nullptr ? *known : learn(csv, columns, tables.at(Split::train), numeric);
  if (known == nullptr) {
    for (Encoding::Column& column : source.encoding.columns) {
      column.numbered = numbers_categories && !column.categories.empty();
    }
    std::vector<std::string> told = notes_on_classes(csv, tables.at(Split::train), source.encoding.classes);
    source.notes.insert(source.notes.end(), told.begin(), told.end());
  }
  for (auto& [split, table] : tables) {
    if (source.encoding.classes.empty() || named_columns) {
      check_targets_are_numbers(table, columns.targets.front().text);
    } else {
      read_as_classes(csv, columns, split, left_out, kind, table);
    }
    take_skipped(table.skipped, table.rows + std::ssize(table.skipped), "rows", split, source.encoding, source.notes);
    source.splits[split] =
        std::make_shared<TableDataset>(std::move(table), source.encoding, csv, files_of(csv, split).front(), numeric);
    note_unknown(*source.splits[split], name_of(split), source.notes);
  }
  if (known != nullptr) note_filled(source.splits, *known, source.notes);
  return source;
}

InputTable open_inputs(const Csv& csv, const std::string& path, const Encoding& known,
                       std::shared_ptr<const tokenizers::Tokenizer> tokenizer) {
  TableColumns columns = columns_of(csv, known);
  columns.targets.clear();
  columns.weight.clear();
  TableText file = open_table(csv, path);
  check_has_columns(csv, file, known);
  std::vector<TableText> files;
  files.push_back(std::move(file));
  Table table = read_table(csv, files, columns, TargetKind::numbers);
  InputTable inputs{nullptr, {}, std::move(table.skipped)};
  const auto dataset = std::make_shared<TableDataset>(std::move(table), known, csv, path, false);
  note_unknown(*dataset, "inputs", inputs.notes);
  note_filled(*dataset, "inputs", known, inputs.notes);
  inputs.dataset = dataset;
  if (csv.text) {
    TokenRows rows = tokens_of(dataset->take_documents(), tokenizer.get(), csv);
    inputs.notes.push_back(note_on_lengths(rows, csv, "inputs"));
    inputs.dataset = with_tokens(dataset, std::move(rows), csv, std::move(tokenizer));
  }
  return inputs;
}

}  // namespace pmaptrain::data
