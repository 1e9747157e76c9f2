// How a source's training split is read, as far as the config leaves it to the data: the categories of columns, the
// names of classes, statistics. Evaluation, prediction and a resumed run must read their data in the same way, so a
// checkpoint holds it (state.json).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/field.h"

namespace pmaptrain::data {

struct Encoding {
  // An input column of a table: a number; or of categories a one-hot vector over them, or the number of one.
  struct Column {
    std::string name;
    std::vector<std::string> categories;  // in the order of their numbers; empty: a number
    std::optional<double> missing = {};   // the mean that stands for a number that is not given, where one is asked for
    bool numbered = false;  // one number for its categories: 1, 2, ... in their order; 0 for a text that is none
    // How many of the inputs it is.
    std::size_t width() const { return categories.empty() || numbered ? 1 : categories.size(); }
    friend bool operator==(const Column&, const Column&) = default;
  };
  std::vector<Column> columns;       // of a table, in the order of the inputs
  std::vector<std::string> classes;  // the names of labels 0, 1, ...; empty where labels are numbers
  // Where labels are numbers: the largest one of training + 1. 0 where targets are no labels, for texts, whose tokens
  // are those of a tokenizer, and in runs of older versions.
  std::int64_t labels = 0;
  // How many classes there are; 0 if that is not known.
  std::int64_t class_count() const { return classes.empty() ? labels : static_cast<std::int64_t>(classes.size()); }
  std::int64_t features = 0;        // of rows that leave zeros out: how many numbers an example has; else 0
  std::vector<std::int64_t> image;  // of an image folder: height, width and channels of the inputs; else empty
  using Statistics = FieldStatistics;
  // For `normalize: auto`: of each channel or column.
  std::optional<Statistics> statistics;
  // For `normalize_targets`: statistics of each number of a target, or of its log(1 + target).
  std::optional<Statistics> targets;
  // Whether means are of the numbers as the files have them. Runs of older versions have those of numbers that were
  // rounded to f32.
  bool exact = false;
  // Whether inputs and targets are f64 until they are normalised, because float32 does not tell them apart.
  bool wide_inputs = false, wide_targets = false;
  // For `class_weights: balanced`: weights of the classes 0, 1, ...; else empty.
  std::vector<double> class_weights;
  std::string tokenizer;  // of texts, as hash_of() has it; empty where bytes are tokens
  // Rows and files that `on_error: skip` left out.
  struct Skipped {
    std::string split;
    std::int64_t row = 0;  // among all rows or files
    std::string reason;
    std::string file = {};  // of an image, in the folder of the split
    friend bool operator==(const Skipped&, const Skipped&) = default;
  };
  std::vector<Skipped> skipped;
  friend bool operator==(const Encoding&, const Encoding&) = default;
};

using Skipped = std::vector<Encoding::Skipped>;

}  // namespace pmaptrain::data
