#include "core/data/tables/libsvm.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/file.h"
#include "core/data/tables/csv_reader.h"

namespace pmaptrain::data {
namespace {

using Number = CellNumber::Kind;

constexpr std::string_view form_help = "a line is: label index:value index:value ...";

// Takes the next word off the front of a line; empty at its end.
std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
  const std::size_t end = std::min(line.find_first_of(" \t\r"), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

// Appends the row of a line to `rows`. If read() throws, leave_row() removes what it has appended of the row.
class LineReader {
 public:
  LineReader(const SparseForm& form, SparseRows& rows) : form_(form), rows_(rows) {}

  void read(std::string_view line, std::int64_t number) {
    line_ = number;
    const std::string_view label = next_word(line);
    const CellNumber value = to_number(label);
    if (value.kind == Number::infinite || value.kind == Number::beyond_float) {
      fail("the label " + shown_cell(label) + " is no finite number", "numbers are of float32");
    }
    if (value.kind != Number::number) {
      const bool are_several = label.find(',') != std::string_view::npos;
      fail(shown_cell(label) + " is no label",
           are_several ? "an example has one label, and decimals have a point" : std::string(form_help));
    }
    if (form_.whole_labels && (value.value != std::floor(value.value) || std::abs(value.value) > 1e15)) {
      fail("the label " + std::string(label) + " is no whole number",
           "whole numbers are classes; for a loss of numbers, such as mean_squared_error, labels are numbers");
    }
    std::int64_t last = 0;
    for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) last = take(word, last);
    rows_.labels.push_back(value.value);
    rows_.lines.push_back(line_);
    rows_.ends.push_back(rows_.columns.size());
    rows_.features = std::max(rows_.features, last);
  }
  void leave_row() {
    const std::size_t end = rows_.ends.empty() ? 0 : rows_.ends.back();
    rows_.columns.resize(end);
    rows_.values.resize(end);
  }

 private:
  // One number of a row; `last` is the index of that before it. Returns its index.
  std::int64_t take(std::string_view word, std::int64_t last) {
    const std::size_t colon = word.find(':');
    std::int64_t index = 0;
    const char* const end = word.data() + std::min(colon, word.size());
    const auto [at, error] = std::from_chars(word.data(), end, index);
    if (colon == std::string_view::npos || at != end || error == std::errc::invalid_argument) {
      const bool is_query = word.starts_with("qid:");
      fail(shown_cell(word) + " is no index:value",
           is_query ? "rankings are not supported; remove qid" : std::string(form_help));
    }
    if (word.starts_with('-') || (index < 1 && error == std::errc())) {
      fail(fmt::format("the index is {}, and indices are from 1", word.substr(0, colon)),
           "add 1 to all of them; sklearn.datasets.dump_svmlight_file takes zero_based=False");
    }
    if (error != std::errc() || index > form_.features) {
      using Limit = SparseForm::Limit;
      const std::string_view what = form_.limit == Limit::of_key        ? "features, which is "
                                    : form_.limit == Limit::of_training ? "the largest of the training split, "
                                                                        : "";
      fail(fmt::format("the index {} is more than {}{}", word.substr(0, colon), what, form_.features),
           form_.limit == Limit::of_all_files ? "an example with its zeros would be too large"
                                              : "set features to the largest index of all splits");
    }
    if (index <= last) fail(fmt::format("the index {} follows {}", index, last), "the indices of a row ascend");
    const std::string_view cell = word.substr(colon + 1);
    const CellNumber value = to_number(cell);
    if (value.kind != Number::number) {
      fail(shown_cell(cell) + " is no finite number", "numbers are decimal with a point, and of float32");
    }
    rows_.columns.push_back(static_cast<std::uint32_t>(index - 1));
    rows_.values.push_back(static_cast<float>(value.value));
    return index;
  }

  [[noreturn]] void fail(const std::string& what, std::string help) const {
    fail_data(fmt::format("'{}', line {}: {}", rows_.path, line_, what), std::move(help));
  }

  const SparseForm& form_;
  SparseRows& rows_;
  std::int64_t line_ = 0;
};

class SparseDataset final : public Dataset {
 public:
  // `labels`: the numbers of the classes; empty where labels are numbers, or there are no targets.
  SparseDataset(SparseRows rows, std::int64_t features, std::vector<std::int32_t> labels, bool has_targets = true)
      : rows_(std::move(rows)), features_(features), labels_(std::move(labels)), has_targets_(has_targets) {
    if (!has_numbers()) rows_.labels = {};
    rows_.columns.shrink_to_fit();
    rows_.values.shrink_to_fit();
  }

  std::int64_t size() const override { return std::ssize(rows_.ends); }
  Field input() const override { return {DType::f32, {features_}, "'" + rows_.path + "'"}; }
  Field target() const override {
    if (!has_targets_) return no_target();
    return {labels_.empty() ? DType::f32 : DType::i32, labels_.empty() ? Shape{1} : Shape{}, "'" + rows_.path + "'"};
  }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    const auto row = static_cast<std::size_t>(index);
    if (has_numbers()) {
      const auto value = static_cast<float>(rows_.labels[row]);
      std::memcpy(target, &value, sizeof(value));
    } else if (has_targets_) {
      std::memcpy(target, &labels_[row], sizeof(labels_[row]));
    }
    if (input == nullptr) return;
    auto* const values = reinterpret_cast<float*>(input);
    std::fill_n(values, features_, 0.0F);
    for (std::size_t i = row == 0 ? 0 : rows_.ends[row - 1]; i < rows_.ends[row]; ++i) {
      values[rows_.columns[i]] = rows_.values[i];
    }
  }
  std::string line_of(std::int64_t index) const override {
    return fmt::format("'{}', line {}", rows_.path, rows_.lines[static_cast<std::size_t>(index)]);
  }
  std::optional<std::pair<std::int64_t, std::int64_t>> label_range() const override {
    if (labels_.empty()) return std::nullopt;
    const auto [least, largest] = std::minmax_element(labels_.begin(), labels_.end());
    return std::pair<std::int64_t, std::int64_t>(*least, *largest);
  }

 private:
  bool has_numbers() const { return has_targets_ && labels_.empty(); }

  SparseRows rows_;
  std::int64_t features_;
  std::vector<std::int32_t> labels_;
  bool has_targets_;
};

std::string name_of_class(double label) { return std::to_string(static_cast<std::int64_t>(label)); }

// The classes of the training split, by their numbers.
std::vector<std::string> classes_of(const SparseRows& train) {
  std::vector<double> labels = train.labels;
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  std::vector<std::string> names;
  names.reserve(labels.size());
  for (const double label : labels) names.push_back(name_of_class(label));
  return names;
}

std::vector<std::int32_t> labels_of(const SparseRows& rows, const std::vector<std::string>& classes) {
  std::map<std::string, std::int32_t, std::less<>> numbers;
  for (const std::string& name : classes) numbers.emplace(name, static_cast<std::int32_t>(numbers.size()));
  std::vector<std::int32_t> labels;
  labels.reserve(rows.labels.size());
  std::map<double, std::int32_t> known;  // by label, of which there are few
  for (std::size_t i = 0; i < rows.labels.size(); ++i) {
    const auto [label, is_new] = known.try_emplace(rows.labels[i]);
    if (is_new) {
      const std::string name = name_of_class(label->first);
      const auto at = numbers.find(name);
      if (at == numbers.end()) {
        fail_data(
            fmt::format("'{}', line {}: the label {} is not in the training split", rows.path, rows.lines[i], name),
            fmt::format("its classes are {}", shown_list(classes, 12)));
      }
      label->second = at->second;
    }
    labels.push_back(label->second);
  }
  return labels;
}

}  // namespace

SparseRows read_sparse_rows(std::string_view text, std::string path, const SparseForm& form) {
  SparseRows rows;
  rows.path = std::move(path);
  LineReader reader(form, rows);
  auto listed = form.left_out.begin();
  std::int64_t record = 0;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const bool was_left_out = listed != form.left_out.end() && listed->row == record;
    try {
      if (was_left_out) fail_data(listed++->reason);
      reader.read(line, number);
    } catch (const Error& error) {
      if (!form.skips) throw;
      rows.skipped.push_back({record, error.diagnostics().front().message, {}, was_left_out});
      reader.leave_row();
    }
    ++record;
  }
  if (rows.labels.empty()) fail_data(fmt::format("'{}' has no rows", rows.path), std::string(form_help));
  return rows;
}

Declaration<Libsvm> Libsvm::declaration() {
  const auto path_of = [](Split split, std::string_view example) {
    declare::Key key = split_key(split, example);
    key.is_path = true;
    return key;
  };
  return declare::kind<Libsvm>(
      {.path = "libsvm",
       .meaning = "Sparse rows in the format of LIBSVM and svmlight, plain or gzip: a label, then index:value for each "
                  "number that is not 0, with indices from 1 that ascend. What follows # is a comment. Whole numbers "
                  "are the names of classes, such as -1 and 1, in the order of their values; for a loss of numbers "
                  "labels are numbers. Examples are stored as they are in the files, and given to the model with their "
                  "zeros.",
       .example = "source: {libsvm: {train: a9a, test: a9a.t, features: 123}}"},
      field(&Libsvm::train, {.path = "train",
                             .is_path = true,
                             .need = Need::required,
                             .meaning = "The file of the training split.",
                             .example = "train: a9a"}),
      field(&Libsvm::validation, path_of(Split::validation, "validation: a9a.v")),
      field(&Libsvm::test, path_of(Split::test, "test: a9a.t")),
      field(&Libsvm::features, {.path = "features",
                                .low = 1,
                                .high = static_cast<double>(most_features),
                                .meaning = "Number of numbers of an example: the largest index that a split may have.",
                                .example = "features: 123",
                                .fallback_text = "the largest index of the training split"}),
      field(&Libsvm::on_error, rows_on_error_key()));
}

Source Libsvm::open(const Opening& opening) const {
  Source source;
  if (opening.known != nullptr) source.encoding = *opening.known;
  const std::int64_t known = features.value_or(source.encoding.features);
  using Limit = SparseForm::Limit;
  SparseForm form{!opening.numeric_targets, known > 0 ? known : most_features,
                  features    ? Limit::of_key
                  : known > 0 ? Limit::of_training
                              : Limit::of_all_files,
                  on_error == OnError::skip};
  for (const auto& [split, path] : given(train, validation, test)) {
    if (!opening.wants(split)) continue;
    form.left_out = form.skips ? of_split(opening.left_out, split) : std::vector<SkippedRow>();
    about_file(path, [&, &split = split, &path = path] {
      const Bytes text = read_text(path);
      SparseRows rows = read_sparse_rows(as_text(text), path, form);
      if (split == Split::train && opening.known == nullptr) {
        source.encoding.features = features.value_or(std::max<std::int64_t>(rows.features, 1));
        if (form.whole_labels) source.encoding.classes = classes_of(rows);
        form.features = source.encoding.features;
        if (!features) form.limit = Limit::of_training;
      }
      take_skipped(rows.skipped, std::ssize(rows.labels) + std::ssize(rows.skipped), "rows", split, source.encoding,
                   source.notes);
      std::vector<std::int32_t> labels;
      if (form.whole_labels) labels = labels_of(rows, source.encoding.classes);
      source.of(split) = std::make_shared<SparseDataset>(std::move(rows), source.encoding.features, std::move(labels));
    });
  }
  return source;
}

std::shared_ptr<const Dataset> open_inputs(const Libsvm& libsvm, const std::string& path, const Encoding& known) {
  const std::int64_t features = libsvm.features.value_or(known.features);
  const auto limit = libsvm.features ? SparseForm::Limit::of_key : SparseForm::Limit::of_training;
  const Bytes text = read_text(path);
  SparseRows rows = read_sparse_rows(as_text(text), path, {.features = features, .limit = limit});
  return std::make_shared<SparseDataset>(std::move(rows), features, std::vector<std::int32_t>(), false);
}

}  // namespace pmaptrain::data
