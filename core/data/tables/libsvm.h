// The source of LIBSVM files, which svmlight has too: rows of a label and the numbers that are not 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/opening.h"
#include "core/data/skipped.h"

namespace pmaptrain::data {

struct Libsvm {
  std::string train;  // absolute paths
  std::optional<std::string> validation, test;
  std::optional<std::int64_t> features;  // none: the largest index of the training split
  OnError on_error = OnError::error;

  static constexpr bool learns = true;  // classes, and the number of features
  static Declaration<Libsvm> declaration();
  Source open(const Opening& opening) const;
};

inline constexpr std::int64_t most_features = std::int64_t{1} << 24;

// The rows of a file.
struct SparseRows {
  std::string path;
  std::vector<double> labels;
  std::vector<std::int64_t> lines;  // from 1
  std::vector<std::size_t> ends;    // of each row, in `columns` and `values`
  std::vector<std::uint32_t> columns;
  std::vector<float> values;
  std::int64_t features = 0;  // the largest index
  std::vector<SkippedRow> skipped;
};

// What a row may be.
struct SparseForm {
  bool whole_labels = false;
  std::int64_t features = most_features;
  enum class Limit : std::uint8_t { of_all_files, of_key, of_training } limit = Limit::of_all_files;  // `features`
  bool skips = false;  // rows that are wrong are left out, also those of `left_out`
  std::vector<SkippedRow> left_out = {};
};

// Reads "label index:value index:value ..." from each line. Indices are from 1 and ascend; what follows # is a comment.
// Throws Error (data), which names the line.
SparseRows read_sparse_rows(std::string_view text, std::string path, const SparseForm& form);

// The rows of another file, with the features of the training split, and without targets: labels are not looked up.
std::shared_ptr<const Dataset> open_inputs(const Libsvm& libsvm, const std::string& path, const Encoding& known);

}  // namespace pmaptrain::data
