#include "core/evaluate/prediction_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/machine.h"
#include "core/base/text.h"
#include "core/run/files/file_writer.h"
#include "core/run/files/npy.h"

namespace pmaptrain::evaluate {
namespace {

std::string extension_of(const std::string& path) { return std::filesystem::path(path).extension().string(); }

template <class T>
T element(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

// A cell of text, in quotes if it needs them.
std::string cell_of(std::string_view text) {
  const bool blank_ends = !text.empty() && (text.front() == ' ' || text.back() == ' ');
  if (!blank_ends && text.find_first_of(",\"\r\n\t") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// Whether each example has the name of its file.
bool names_files(const Predictions& predictions) {
  return predictions.inputs->size() > 0 ? !predictions.inputs->file_of(0).empty()
                                        : !predictions.skipped.empty() && !predictions.skipped[0].file.empty();
}

std::string class_name(const Predictions& predictions, std::int64_t index) {
  const auto& names = predictions.classes;
  return index >= 0 && index < std::ssize(names) ? names[static_cast<std::size_t>(index)] : std::to_string(index);
}

// "_2"; for an image "_0_2"; empty if there is only one. Of quantiles "_q0.1", of several numbers "_2_q0.1".
std::string index_of(const Predictions& predictions, std::int64_t column) {
  if (const auto count = std::ssize(predictions.quantiles); count > 0) {
    const std::string number = numel(predictions.shape) > count ? "_" + std::to_string(column / count) : "";
    return number + "_q" + exact(predictions.quantiles[static_cast<std::size_t>(column % count)]);
  }
  if (numel(predictions.shape) == 1) return "";
  std::string index;
  for (std::size_t d = predictions.shape.size(); d-- > 0; column /= predictions.shape[d]) {
    index.insert(0, "_" + std::to_string(column % predictions.shape[d]));
  }
  return index;
}

// "prediction"; "probability_cat", "logit_2"; for a vector "prediction_0", for an image "prediction_0_0".
std::string column_name(const Predictions& predictions, std::int64_t column) {
  using model::PredictionKind;
  const PredictionKind kind = predictions.kind;
  std::string name = !predictions.features.empty()           ? "feature"
                     : kind == PredictionKind::probabilities ? "probability"
                     : kind == PredictionKind::logits        ? "logit"
                                                             : "prediction";
  if (!predictions.label_separator.empty()) return name;
  if (predictions.by_label) return name + "_" + class_name(predictions, column);
  if (numel(predictions.shape) == 1 && predictions.quantiles.empty()) {
    // The one output of a model with two classes belongs to the second class.
    const bool of_second = kind == PredictionKind::probabilities && predictions.by_class;
    return of_second ? name + "_" + class_name(predictions, 1) : name;
  }
  if (predictions.by_class) return name + "_" + class_name(predictions, column);
  return name + index_of(predictions, column);
}

// "red;round": the labels of an example that are predicted.
std::string labels_of(const Predictions& predictions, std::span<const std::byte> row) {
  std::vector<std::string> labels;
  for (std::int64_t label = 0; label < numel(predictions.shape); ++label) {
    if (element<std::int32_t>(row, static_cast<std::size_t>(label)) != 0)
      labels.push_back(class_name(predictions, label));
  }
  return join(labels, predictions.label_separator);
}

// The values of an example.
std::size_t columns_of(const Predictions& predictions) {
  return predictions.label_separator.empty() ? static_cast<std::size_t>(numel(predictions.shape)) : 1;
}

// Formats CSV lines and passes them to `put` in slices.
class CsvLines : public PredictionWriter {
 public:
  explicit CsvLines(const Predictions& predictions) : predictions_(predictions), has_files_(names_files(predictions)) {
    for (const std::string& name : csv_columns(predictions)) text_ += (text_.empty() ? "" : ",") + cell_of(name);
    text_ += '\n';
  }

  void write(std::span<const std::byte> rows) override {
    const std::size_t row_bytes = predictions_.row_bytes();
    for (std::size_t at = 0; at < rows.size(); at += row_bytes) {
      append_skipped();
      for (const data::TextColumn& id : predictions_.ids)
        text_ += cell_of(id.cells[static_cast<std::size_t>(next_row_)]) + ",";
      if (has_files_) text_ += cell_of(predictions_.inputs->file_of(next_example_)) + ",";
      append_row(rows.subspan(at, row_bytes));
      if (predictions_.lists_unreadable_rows) text_ += ',';
      text_ += '\n';
      ++next_row_;
      ++next_example_;
      if (text_.size() >= slice) flush();
    }
  }

  void finish() override {
    append_skipped();
    flush();
  }

 private:
  static constexpr std::size_t slice = std::size_t{1} << 20;

  virtual void put(const std::string& text) = 0;

  void flush() {
    put(text_);
    text_.clear();
  }

  std::size_t row_columns() const { return columns_of(predictions_) * (predictions_.has_deviations ? 2 : 1); }

  void append_row(std::span<const std::byte> row) {
    if (!predictions_.label_separator.empty()) {
      const std::string labels = cell_of(labels_of(predictions_, row));
      // Readers of CSV skip an empty line.
      const bool is_empty_line = labels.empty() && (text_.empty() || text_.back() == '\n');
      text_ += is_empty_line ? "\"\"" : labels;
      return;
    }
    const std::size_t columns = row_columns();
    for (std::size_t i = 0; i < columns; ++i) {
      if (i > 0) text_ += ',';
      if (predictions_.dtype == DType::f32) {
        fmt::format_to(std::back_inserter(text_), "{}", element<float>(row, i));
      } else if (predictions_.dtype == DType::f64) {
        fmt::format_to(std::back_inserter(text_), "{}", element<double>(row, i));
      } else if (predictions_.by_class) {
        text_ += cell_of(class_name(predictions_, element<std::int32_t>(row, i)));
      } else {
        fmt::format_to(std::back_inserter(text_), "{}", element<std::int32_t>(row, i));
      }
    }
  }

  // Appends a line for each unreadable row that comes next in the file of inputs: without a prediction, and with the
  // reason.
  void append_skipped() {
    const std::vector<data::SkippedRow>& skipped = predictions_.skipped;
    for (; next_skipped_ < skipped.size() && skipped[next_skipped_].row == next_row_; ++next_row_, ++next_skipped_) {
      for (const data::TextColumn& id : predictions_.ids)
        text_ += cell_of(id.cells[static_cast<std::size_t>(next_row_)]) + ",";
      if (has_files_) text_ += cell_of(skipped[next_skipped_].file) + ",";
      text_ += std::string(row_columns(), ',');
      text_ += cell_of(skipped[next_skipped_].reason) + "\n";
    }
  }

  const Predictions& predictions_;
  bool has_files_;
  std::int64_t next_row_ = 0, next_example_ = 0;  // among all rows, and among the readable ones
  std::size_t next_skipped_ = 0;
  std::string text_;
};

class CsvFile : public CsvLines {
 public:
  CsvFile(const std::string& path, const Predictions& predictions) : CsvLines(predictions), file_(path) {}
  void finish() override {
    CsvLines::finish();
    file_.close();
    file_.take_place();
  }

 private:
  void put(const std::string& text) override { file_.write(std::as_bytes(std::span(text))); }

  run::Replacement file_;
};

class CsvStream : public CsvLines {
 public:
  CsvStream(std::ostream& stream, const Predictions& predictions) : CsvLines(predictions), stream_(stream) {}

 private:
  void put(const std::string& text) override {
    if (!(stream_ << text << std::flush)) throw StreamRefused();
  }

  std::ostream& stream_;
};

// The type and shape of the array of all predictions.
std::pair<DType, Shape> array_of(const Predictions& predictions) {
  Shape shape{predictions.inputs->size()};
  shape.insert(shape.end(), predictions.shape.begin(), predictions.shape.end());
  return {predictions.dtype == DType::i32 ? DType::i64 : predictions.dtype, std::move(shape)};
}

// The first or the second half of each row: its values, or their standard deviations.
std::vector<std::byte> halves_of(std::span<const std::byte> rows, std::size_t row_bytes, bool second) {
  std::vector<std::byte> halves;
  halves.reserve(rows.size() / 2);
  for (std::size_t at = second ? row_bytes / 2 : 0; at < rows.size(); at += row_bytes) {
    const std::span<const std::byte> half = rows.subspan(at, row_bytes / 2);
    halves.insert(halves.end(), half.begin(), half.end());
  }
  return halves;
}

// Rows as elements of an array: classes become i64, and standard deviations are removed. `wide` is memory for the
// result.
std::span<const std::byte> elements_of(std::span<const std::byte> rows, const Predictions& predictions,
                                       std::vector<std::byte>& wide) {
  if (predictions.has_deviations) return wide = halves_of(rows, predictions.row_bytes(), false);
  if (predictions.dtype != DType::i32) return rows;
  const std::size_t count = rows.size() / sizeof(std::int32_t);
  wide.resize(count * sizeof(std::int64_t));
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t number = element<std::int32_t>(rows, i);
    std::memcpy(wide.data() + i * sizeof(number), &number, sizeof(number));
  }
  return wide;
}

class NpyFile : public PredictionWriter {
 public:
  NpyFile(const std::string& path, const Predictions& predictions) : predictions_(predictions), file_(path) {
    const auto [dtype, shape] = array_of(predictions);
    const std::string header = run::npy_header(dtype, shape);
    file_.write(std::as_bytes(std::span(header)));
  }
  void write(std::span<const std::byte> rows) override { file_.write(elements_of(rows, predictions_, wide_)); }
  void finish() override {
    file_.close();
    file_.take_place();
  }

 private:
  const Predictions& predictions_;
  run::Replacement file_;
  std::vector<std::byte> wide_;
};

// An entry's checksum precedes its elements, so the elements are held in memory.
class NpzFile : public PredictionWriter {
 public:
  NpzFile(std::string path, const Predictions& predictions) : path_(std::move(path)), predictions_(predictions) {
    std::tie(tensor_.dtype, tensor_.shape) = array_of(predictions);
    const std::size_t bytes = size_of(tensor_.dtype) * static_cast<std::size_t>(numel(tensor_.shape));
    demand_memory(bytes * (predictions.has_deviations ? 2 : 1), "'" + path_ + "'",
                  "an .npy or .csv file is written without being held in memory");
    tensor_.bytes.reserve(bytes);
    deviations_.dtype = tensor_.dtype;
    deviations_.shape = tensor_.shape;
    if (predictions.has_deviations) deviations_.bytes.reserve(bytes);
  }
  void write(std::span<const std::byte> rows) override {
    const std::span<const std::byte> elements = elements_of(rows, predictions_, wide_);
    tensor_.bytes.insert(tensor_.bytes.end(), elements.begin(), elements.end());
    if (!predictions_.has_deviations) return;
    const std::vector<std::byte> deviations = halves_of(rows, predictions_.row_bytes(), true);
    deviations_.bytes.insert(deviations_.bytes.end(), deviations.begin(), deviations.end());
  }
  void finish() override {
    run::Tensors tensors;
    tensors.emplace(predictions_.features.empty() ? "predictions" : "features", std::move(tensor_));
    if (predictions_.has_deviations) tensors.emplace("standard_deviations", std::move(deviations_));
    run::write_npz(path_, tensors);
  }

 private:
  std::string path_;
  const Predictions& predictions_;
  run::Tensor tensor_, deviations_;
  std::vector<std::byte> wide_;
};

}  // namespace

std::vector<std::string> csv_columns(const Predictions& predictions) {
  std::vector<std::string> columns;
  for (const data::TextColumn& id : predictions.ids) columns.push_back(id.name);
  if (names_files(predictions)) columns.emplace_back("file");
  const auto values = static_cast<std::int64_t>(columns_of(predictions));
  for (std::int64_t i = 0; i < values; ++i) columns.push_back(column_name(predictions, i));
  for (std::int64_t i = 0; predictions.has_deviations && i < values; ++i) {
    columns.push_back("std" + index_of(predictions, i));
  }
  if (predictions.lists_unreadable_rows) columns.emplace_back("error");
  return columns;
}

bool is_prediction_file(const std::string& path) {
  const std::string extension = extension_of(path);
  return extension == ".csv" || extension == ".npy" || extension == ".npz";
}

std::unique_ptr<PredictionWriter> open_prediction_file(const std::string& path, const Predictions& predictions) {
  run::remove_abandoned(path);
  const std::string extension = extension_of(path);
  if (extension == ".csv") return std::make_unique<CsvFile>(path, predictions);
  if (extension == ".npy") return std::make_unique<NpyFile>(path, predictions);
  return std::make_unique<NpzFile>(path, predictions);
}

std::unique_ptr<PredictionWriter> open_prediction_stream(std::ostream& stream, const Predictions& predictions) {
  return std::make_unique<CsvStream>(stream, predictions);
}

}  // namespace pmaptrain::evaluate
