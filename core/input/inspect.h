// Guesses the meaning of a user's files: which arrays, columns and folders are inputs, targets and splits. `init`
// writes the guess to a config, where the user can change it. Nothing else guesses.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/text_encoding.h"

namespace pmaptrain::input {

// `init` leaves out a row or file only if there are at least this many for each.
inline constexpr std::int64_t least_for_one_skipped = 20;

// The words of a name, in lower case: "X_train" has x and train.
std::vector<std::string> words_of(std::string_view name);
// "test" -> the test split, "dev" -> validation, ...
std::optional<data::Split> split_of(std::string_view word);

// Whether an array called so may have the lengths of sequences: "n", "x_len", "lengths".
bool is_called_lengths(std::string_view name);

// The arrays of an NPZ archive by split: those called x_train and y_train, images and labels and the like; or the only
// two with as many rows. Throws Error (data), which lists the arrays, where that is not clear.
struct ArrayNames {
  std::string inputs, targets;
};
std::map<data::Split, ArrayNames> find_arrays(const std::string& path);

// What the other arrays of the archive are. Lengths of the inputs' sequences are integers (N) or (N,1) from 0 to T of
// inputs (N,T,...), of which the targets have one row each, and are called len, lengths, n or the like.
struct OtherArrays {
  std::map<data::Split, std::string> lengths;  // of all splits, or of none
  std::int64_t tokens = 0;                     // the inputs of sequences of different lengths are integers below it
  std::vector<std::string> notes;              // a sentence on each array that is left out
};
OtherArrays find_other_arrays(const std::string& path, const std::map<data::Split, ArrayNames>& arrays);

// The columns of a table, judged by its first rows.
struct TableLayout {
  char delimiter = ',';
  bool header = true;                    // else columns are named by their number
  std::vector<std::string> inputs;       // in the order of the file
  std::vector<std::string> categorical;  // those of the columns above that have texts
  std::size_t most_categories = 0;       // the most texts that one of these has
  std::vector<std::string> targets;      // one, or those that were asked for
  bool are_labels = false;               // several targets say each whether a label applies
  std::string target_because;            // "the last column"; empty for what was asked for
  std::string label_separator;           // where the cells of the target are lists of labels: "a;b"
  data::TextEncoding encoding = data::TextEncoding::utf8;
  std::vector<std::string> missing_values;      // texts in columns that have numbers else
  std::vector<std::string> missing_categories;  // texts that mean an empty cell, in columns of texts
  std::string dated_by;                         // a column of dates in whose order the rows are; empty without one
  bool has_missing = false;                     // an input has empty cells
  bool has_stray_texts = false;  // in columns of numbers, in so few rows that on_error: skip leaves these out
  struct Ignored {
    std::string column, why;      // "day", "it has dates"
    bool has_categories = false;  // many, but each in several rows
  };
  std::vector<Ignored> ignored;              // columns that are no inputs
  std::vector<std::string> numbers_of_rows;  // inputs that have another whole number in each row
  std::string text;                          // where no column is an input otherwise: one of texts, whose tokens are
  std::vector<std::string> notes;
};
// "latin-1", as the key csv.encoding takes it.
std::string_view name_of(data::TextEncoding encoding);
// `targets` names the targets; none: one is guessed. Throws Error (data) for a table of fewer than two columns, and
// without those.
TableLayout find_columns(const std::string& path, const std::vector<std::string>& targets = {});

// What the targets of the first examples are: rows of zeros with one 1, rows of zeros and ones, or others.
enum class TargetRows { one_hot, zeros_and_ones, numbers };
TargetRows kind_of_rows(const data::Dataset& dataset);
// Whether all examples have the same target, those of `more` too.
bool has_one_target(const data::Dataset& train, const data::Dataset* more);
// Whether the targets are single numbers of at least 0, a few of which are much larger than the others, and their
// logarithms are distributed more evenly.
bool has_long_tail(const data::Dataset& dataset);
// The mean of targets that are single whole numbers of at least 0 and spread at least as widely as counts of a Poisson
// distribution: their variance is no smaller than their mean. None for others.
std::optional<double> mean_of_counts(const data::Dataset& dataset);

// The inputs or the targets of a dataset where they are whole numbers alone.
struct WholeNumbers {
  std::int64_t least = 0, most = 0;
  std::size_t distinct = 0;
};
enum class NumbersOf { inputs, targets };
std::optional<WholeNumbers> whole_numbers(const data::Dataset& dataset, NumbersOf which);

// The folders of a set of images: a folder with folders called train, and perhaps test and val, or one that has the
// folders of the classes itself. `size` is set where images differ in size; files that cannot be read do not count.
// Folders called images and masks with files of the same names are no classes: images have masks. `size` is then set
// always, to multiples of `mask_multiple`.
struct ImageFolders {
  std::map<data::Split, std::string> folders;
  std::optional<std::vector<std::int64_t>> size;
  bool have_masks = false;
};
inline constexpr std::int64_t mask_multiple = 4;
ImageFolders find_images(const std::string& path);

}  // namespace pmaptrain::input
