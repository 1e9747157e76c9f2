#include "core/input/table_target.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/skipped.h"
#include "core/data/tables/csv_reader.h"

namespace pmaptrain::input {
namespace {

constexpr std::size_t least_rows_of_label = 5;

// "column 'y' of 't.csv', the target,"
std::string shown_target(const Column& column, const std::string& path) {
  return "column '" + shown_name(column.name) + "' of '" + path + "', the target,";
}

std::size_t cells_of(const Column& column) { return column.numbers + column.texts; }

// "--target a --target b"
std::string options_for(const std::vector<std::string>& names) {
  std::string options;
  for (const std::string& name : names) {
    options += (options.empty() ? "--target " : " --target ") + shell_quoted(printable(name));
  }
  return options;
}

// The names in "a,b,c" where all of them are columns.
std::vector<std::string> names_in(const std::string& list, const std::vector<std::string>& columns) {
  std::vector<std::string> names;
  for (std::string_view rest = list; !rest.empty();) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    names.emplace_back(data::without_blanks(rest.substr(0, end)));
    if (std::find(columns.begin(), columns.end(), names.back()) == columns.end()) return {};
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return names;
}

std::size_t named_target(const std::vector<Column>& columns, const std::string& name, const std::string& path) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name) return i;
    names.push_back(columns[i].name);
  }
  std::string help = "its columns are " + join(names, ", ");
  if (const std::vector<std::string> several = names_in(name, names); several.size() > 1) {
    help = "for several, repeat the option: " + options_for(several);
  } else if (const std::string near = nearest(name, names); !near.empty()) {
    help = "did you mean '" + near + "'?";
  }
  fail_data("'" + path + "' has no column '" + printable(name) + "' for --target", std::move(help));
}

std::size_t guessed_target(const std::vector<Column>& columns) {
  static const WordSet names = {"target", "label", "labels", "class", "y", "outcome", "species", "output", "response"};
  for (std::size_t i = columns.size(); i-- > 0;) {
    if (names.contains(letters_of(columns[i].name))) return i;
  }
  return columns.size() - 1;
}

// The labels in a cell, and how many cells have several.
struct Labels {
  WordSet names;
  std::size_t lists = 0;
};
Labels split_labels(const Column& column, char separator) {
  Labels labels;
  for (const std::string& cell : column.values) {
    std::size_t count = 0;
    for (std::string_view rest = cell; !rest.empty();) {
      const std::size_t end = std::min(rest.find(separator), rest.size());
      if (const std::string_view label = data::without_blanks(rest.substr(0, end)); !label.empty()) {
        labels.names.emplace(label);
        ++count;
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    labels.lists += count > 1 ? 1 : 0;
  }
  return labels;
}

// The text between labels where cells of the target are lists of them: a few labels in many combinations.
std::string separator_of(const Column& column) {
  if (column.texts == 0 || column.values.size() > most_values) return "";
  for (const char separator : {';', '|', ','}) {
    const Labels labels = split_labels(column, separator);
    const bool are_few = labels.names.size() * least_rows_of_label <= cells_of(column);
    if (labels.lists > 0 && are_few && labels.names.size() <= column.values.size()) return {separator};
  }
  return "";
}

// How many words the cells of a column combine in many ways; 0 where they seem to be names of classes.
std::size_t combined_words(const Column& column) {
  constexpr std::size_t most_texts_of_classes = 10;
  if (column.texts == 0 || column.values.size() <= most_texts_of_classes || column.values.size() > most_values) {
    return 0;
  }
  const Labels labels = split_labels(column, ' ');
  const bool are_few = labels.names.size() * least_rows_of_label <= cells_of(column);
  return are_few && 2 * labels.names.size() <= column.values.size() ? labels.names.size() : 0;
}

// Rows without a target are left out as long as they are few.
void check_missing(const Column& column, const std::string& path, std::size_t rows, bool are_words) {
  const auto missing = static_cast<std::int64_t>(column.texts > 0 ? column.empty : column.missing);
  const std::int64_t line = column.texts > 0 ? column.empty_line : column.missing_line;
  const auto count = static_cast<std::int64_t>(rows);
  if (missing == 0 || (missing <= data::most_skipped(count) && missing * least_for_one_skipped <= count)) return;
  std::string help =
      "remove these rows: nothing can be learned from an example without a target; on_error: skip leaves "
      "out at most " +
      counted(data::most_skipped(count), "row");
  if (are_words) {
    help =
        "where its cells are lists of labels, write ';' between two of them, or label_separator: \" \" in a config: an "
        "empty cell then has no label; else remove these rows";
  }
  if (column.values.size() == 1) {
    help = "if an empty cell is a class as well, write a word for it, such as no; else " + help;
  }
  fail_data(shown_target(column, path) + " is empty in " + with_commas(missing) + " of " + counted(count, "row") +
                ", the first in line " + std::to_string(line),
            std::move(help));
}

// What a column to predict says of the table, and whether it can be predicted.
void take_target(TableLayout& layout, const Column& column, const std::string& path, std::size_t rows) {
  layout.targets.push_back(column.name);
  if (column.is_empty()) {
    fail_data("column '" + column.name + "' of '" + path + "', the target, is empty",
              "the target is the last column, or one that is called 'target' or 'label'");
  }
  if (has_lists(column)) {
    fail_data(shown_target(column, path) + " has lists in the notation of Python or JSON, such as " +
                  data::shown_cell(column.list.text) + " in line " + std::to_string(column.list.line),
              "write the labels with a text between two, such as art;music: in pandas, df['" + column.name +
                  "'].str.join(';') before to_csv, if they are lists there");
  }
  layout.label_separator = separator_of(column);
  if (!layout.label_separator.empty()) return;
  const std::size_t words = combined_words(column);
  check_missing(column, path, rows, words > 0);
  if (words > 0) {
    layout.notes.push_back("The texts of column '" + column.name + "', the target, are " +
                           with_commas(std::ssize(column.values)) + " combinations of " + std::to_string(words) +
                           " words, such as " + data::shown_cell(column.text.text) +
                           ". If these are labels, set label_separator: \" \" below target, loss: "
                           "sigmoid_cross_entropy, metrics: [f1], and dense: " +
                           std::to_string(words) + " as the last layer.");
  }
  if (!has_stray_texts(column)) return;
  if (column.values.size() > most_texts(rows)) {
    fail_data("column '" + column.name + "' of '" + path + "', the target, " + strays_of(column),
              "mend these cells, or remove their rows");
  }
  layout.notes.push_back("Column '" + column.name + "', the target, " + strays_of(column) +
                         ": all its cells are taken as classes.");
}

// The last column, where nothing says what is predicted: it must be something that can be.
void check_last(const std::vector<Column>& columns, const std::string& path) {
  const Column& last = columns.back();
  if (!has_dates(last)) return;
  const auto other = std::find_if(columns.begin(), columns.end(), [](const Column& column) {
    return column.numbers > 0 && column.texts == 0 && !has_dates(column) && !names_rows(column) && !column.counts_rows;
  });
  fail_data(
      "column '" + shown_name(last.name) + "' of '" + path + "', the last one, would be the target, but it has dates",
      "name the column to predict: --target " +
          (other == columns.end() ? "NAME" : shell_quoted(printable(other->name))));
}

// Whether a column says of each row whether a label applies.
bool is_label(const Column& column) {
  return column.truths == cells_of(column) && column.values.size() == 2 && column.missing == 0;
}

// Says how several columns at the end are taken together.
void note_labels(TableLayout& layout, const std::vector<Column>& columns) {
  std::vector<std::string> names;
  for (auto column = columns.rbegin(); column != columns.rend() && is_label(*column); ++column) {
    names.insert(names.begin(), column->name);
  }
  if (names.size() < 2 || names.size() == columns.size()) return;
  layout.notes.push_back(
      "The last " + std::to_string(names.size()) +
      " columns have two values each, such as 0 and 1. If all of them are labels to predict: " + options_for(names));
}

// Several columns are labels where all cells say whether one applies. One that does not is named: it makes numbers of
// all of them.
void take_labels(TableLayout& layout, const std::vector<Column>& columns, const std::vector<std::size_t>& targets,
                 const std::string& path) {
  constexpr std::size_t least_cells_of_other = 100;
  bool are_nearly = true;
  std::size_t cells = 0, others = 0;
  for (const std::size_t at : targets) {
    const std::size_t other = cells_of(columns[at]) - columns[at].truths;
    are_nearly = are_nearly && columns[at].truths > 0 && other * least_cells_of_other <= cells_of(columns[at]);
    cells += cells_of(columns[at]);
    others += other;
  }
  layout.are_labels = others == 0;
  if (layout.are_labels || !are_nearly) return;
  const auto first =
      std::find_if(targets.begin(), targets.end(), [&](std::size_t at) { return columns[at].other.line > 0; });
  const Column& column = columns[*first];
  const std::string what = "'" + path + "', line " + std::to_string(column.other.line) + ", column '" + column.name +
                           "': " + data::shown_cell(column.other.text) + " is no label; " +
                           with_commas(static_cast<std::int64_t>(cells - others)) + " of the " +
                           counted(static_cast<std::int64_t>(cells), "cell") + " of the targets are";
  const std::string help = "a label is 0 or 1, no or yes, or False or True";
  const bool are_numbers =
      std::all_of(targets.begin(), targets.end(), [&](std::size_t at) { return columns[at].texts == 0; });
  if (!are_numbers) fail_data(what, help);
  layout.notes.push_back(what + ", so the targets are taken as numbers: mend the cell for labels.");
}

}  // namespace

std::vector<std::size_t> find_targets(const std::vector<Column>& columns, const std::vector<std::string>& chosen,
                                      const std::string& path, std::size_t rows, TableLayout& layout) {
  std::vector<std::size_t> targets;
  for (const std::string& name : chosen) {
    const std::size_t at = named_target(columns, name, path);
    if (std::find(targets.begin(), targets.end(), at) == targets.end()) targets.push_back(at);
  }
  if (chosen.empty()) {
    targets.push_back(guessed_target(columns));
    const bool is_last = targets.front() + 1 == columns.size();
    layout.target_because = is_last ? "the last column" : "by its name";
    if (is_last) {
      check_last(columns, path);
      note_labels(layout, columns);
    }
  }
  for (const std::size_t at : targets) take_target(layout, columns[at], path, rows);
  if (targets.size() > 1) {
    layout.label_separator.clear();
    take_labels(layout, columns, targets, path);
  }
  return targets;
}

}  // namespace pmaptrain::input
