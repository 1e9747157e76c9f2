// The source of CSV files.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/data/opening.h"
#include "core/data/skipped.h"
#include "core/data/text_encoding.h"
#include "core/declare/kind.h"

namespace pmaptrain::data {

// What stands for an empty cell of an input: the mean of the column's numbers, or a category of its own.
enum class Missing { error, mean, category };
struct MissingCells {
  Missing numbers = Missing::error, texts = Missing::error;  // of columns that are not named
  std::vector<std::pair<ColumnName, Missing>> columns;

  Missing of(std::string_view column, bool categorical) const {
    for (const auto& [name, treatment] : columns) {
      if (name.text == column) return treatment;
    }
    return categorical ? texts : numbers;
  }
  void set(std::string_view word) {
    numbers = word == "error" ? Missing::error : Missing::mean;
    texts = word == "fill" ? Missing::category : Missing::error;
  }
  void set(ColumnName column, std::string_view word) {
    columns.emplace_back(std::move(column), word == "mean"       ? Missing::mean
                                            : word == "category" ? Missing::category
                                                                 : Missing::error);
  }
};
// A category that the training split does not have.
enum class Unknown { error, ignore };
constexpr std::array<declare::Word<Unknown>, 2> words_of(declare::Tag<Unknown>) {
  return {{{"error", Unknown::error}, {"ignore", Unknown::ignore}}};
}

// Which end of a text that is too long is cut off.
enum class Truncate { right, left };
constexpr std::array<declare::Word<Truncate>, 2> words_of(declare::Tag<Truncate>) {
  return {{{"right", Truncate::right}, {"left", Truncate::left}}};
}

// Tables of text, one row per example.
struct Csv {
  using Files = std::vector<std::string>;  // absolute paths; their rows follow one another
  Files train;
  std::optional<Files> validation, test;
  std::optional<std::vector<ColumnName>> inputs;  // none: all columns but those of another part, and `exclude`
  std::vector<ColumnName> exclude;
  std::vector<ColumnName> target;              // at least one; several are the outputs of a regression
  std::vector<ColumnName> classes;             // in order; none: those of the training split, sorted
  std::optional<std::string> label_separator;  // the target is a text of labels: "a;b"
  std::optional<ColumnName> weight;
  bool header = true;  // false: columns are named by their number, from 0
  std::string delimiter = ",";
  TextEncoding encoding = TextEncoding::utf8;
  std::vector<ColumnName> categorical;
  MissingCells missing;
  std::vector<ColumnName> missing_values;      // texts, of which each means a missing number
  std::vector<ColumnName> missing_categories;  // texts, of which each means an empty cell of a categorical input
  Unknown unknown = Unknown::error;
  OnError on_error = OnError::error;
  std::optional<ColumnName> text;          // the tokens of this column are the inputs:
  std::optional<std::int64_t> max_length;  // at most so many; none: 256
  std::optional<Truncate> truncate;        // none: right
  std::optional<bool> special_tokens;      // of the tokenizer, around each text; none: true

  std::int64_t most_tokens() const { return max_length.value_or(256); }
  bool keeps_end() const { return truncate == Truncate::left; }
  bool has_special_tokens() const { return special_tokens.value_or(true); }
  bool has_lengths() const { return text.has_value(); }

  static constexpr bool learns = true;  // columns, categories and classes
  static Declaration<Csv> declaration();
  Source open(const Opening& opening) const;
};

}  // namespace pmaptrain::data
