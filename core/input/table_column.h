// What is counted of a column of a table, and what it seems to be by that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/tables/dates.h"

namespace pmaptrain::input {

using WordSet = std::set<std::string, std::less<>>;

// Maximum number of distinct values of a column; a column with more texts is not an input.
inline constexpr std::size_t most_values = std::size_t{1} << 16;

// A cell, and its line.
struct CellAt {
  std::string text;
  std::int64_t line = 0;
};

struct Column {
  std::string name;
  std::size_t texts = 0, numbers = 0, missing = 0, empty = 0, dates = 0, decimal_commas = 0, formatted = 0;
  bool is_empty() const { return texts + numbers == 0; }
  // Among texts, NA and the like are texts.
  bool has_missing() const { return texts > 0 ? empty > 0 : missing > 0; }
  std::string decimal_comma, with_signs;          // one of them
  CellAt text;                                    // the first one
  std::int64_t empty_line = 0, missing_line = 0;  // of the first empty cell, and of the first that is missing
  std::vector<std::size_t> text_rows;             // the first of them
  bool has_leading_zero = false;                  // "0,579"
  std::map<std::string, std::size_t, std::less<>> placeholders;  // "?", and how often
  WordSet missing_words;                                         // "NA"
  std::string padded;                                            // "01234"
  std::size_t compact_dates = 0;                                 // "20240131", among numbers
  data::DateOrder order;
  std::size_t lists = 0;      // "['a', 'b']"
  CellAt list;                // the first one
  std::size_t with_unit = 0;  // "12 kg"
  std::string unit;           // of the first one
  std::size_t sentences = 0;  // texts of several words
  std::size_t truths = 0;     // 0 and 1, no and yes, False and True
  CellAt other;               // the first cell that is neither one of them nor empty
  // These flags concern cells that are not texts.
  bool has_integers = true;     // alone
  bool counts_rows = true;      // they are 0, 1, 2, ... or 1, 2, 3, ...
  std::optional<double> first;  // what the first row would have so
  WordSet values;               // different ones, as long as they are few
};

// Counts a cell.
void count_cell(Column& column, std::string_view cell, std::size_t row, std::int64_t line);

bool has_dates(const Column& column);
// Whether its name says that it names or numbers the rows.
bool names_rows(const Column& column);
// Whether its cells have whole numbers, in each row another one.
bool has_number_for_each_row(const Column& column);
// Whether a column has few texts among many numbers, so that its texts are probably mistakes.
bool has_stray_texts(const Column& column);
// "has numbers but in 3 rows, such as 'x' in line 7"
std::string strays_of(const Column& column);
// Whether its texts are numbers with a unit behind them: "12 kg".
bool has_unit(const Column& column);
// Whether most of its cells are texts of several words, and no names of categories.
bool has_sentences(const Column& column, std::size_t rows);
// Whether most of its texts are lists in the notation of Python or JSON.
bool has_lists(const Column& column);
// A column of texts that has more of them is no input.
std::size_t most_texts(std::size_t rows);
// Whether the rows of its texts may be left out, so that it is one of numbers.
bool is_of_numbers(const Column& column, std::size_t rows);
// Why a column that is not the target is no input; empty where it is one.
std::string why_ignored(const Column& column, bool is_first, std::size_t rows);

// A column of numbers in which texts stand for missing ones becomes one of numbers. Returns these texts.
std::vector<std::string> take_placeholders(Column& column);
// The texts of a column of texts that mean what an empty cell means, where it has several spellings of that.
std::vector<std::string> spellings_of_missing(const Column& column);
// A column of numbers with leading zeros becomes one of codes, such as those of places: texts.
bool take_codes(Column& column);

}  // namespace pmaptrain::input
