#include "app/table_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/spec/print.h"

namespace pmaptrain::app {

std::string commented(std::string line, const std::string& comment) {
  constexpr std::size_t column = 44;
  line.append(line.size() < column ? column - line.size() : 2, ' ');
  return line + "# " + comment + "\n";
}

std::string in_a_line(const std::string& text) {
  std::string line = printable(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

std::string list_of(const std::vector<std::string>& names) {
  std::vector<std::string> items;
  items.reserve(names.size());
  for (const std::string& name : names) items.push_back(spec::print_text(name));
  return "[" + join(items, ", ") + "]";
}

std::string first_names(const std::vector<std::string>& names, std::size_t most) {
  std::vector<std::string> first(names.begin(),
                                 names.begin() + static_cast<std::ptrdiff_t>(std::min(most, names.size())));
  if (most < names.size()) first.emplace_back("...");
  return in_a_line(join(first, ", "));
}

std::string names_comment(const std::string& kind, const std::vector<std::string>& names) {
  return names.empty() ? "" : "# " + kind + ": " + first_names(names, 10) + ".\n";
}

std::string shown_path(const std::string& path, const std::filesystem::path& folder, const std::string& given) {
  const std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
  const std::filesystem::path relative = whole.lexically_relative(folder);
  std::error_code ignored;
  const bool is_above = !relative.empty() && *relative.begin() == "..";
  // A link may lead to the folder, and ".." elsewhere.
  const bool is_outside = is_above && (std::filesystem::path(given).is_absolute() ||
                                       !std::filesystem::equivalent(folder / relative, whole, ignored));
  return spec::print_text(relative.empty() || is_outside ? whole.string() : relative.string());
}

std::string skipping() { return commented("      on_error: skip", "what cannot be read is left out"); }

bool embeds_categories(const input::TableLayout& layout) {
  constexpr std::size_t most_inputs = 8;  // of a column, in its place
  return layout.most_categories > most_inputs;
}

SourceText table_source(const input::TableLayout& layout, const std::string& path) {
  SourceText text;
  text.yaml = "    csv:\n      train: " + path + "\n";
  text.yaml += commented(
      "      target: " + (layout.targets.size() == 1 ? spec::print_text(layout.targets[0]) : list_of(layout.targets)),
      "what is to be predicted");
  if (!layout.label_separator.empty()) {
    text.yaml += commented(fmt::format("      label_separator: \"{}\"", layout.label_separator),
                           "a cell is a list of labels; an empty one has none");
  }
  if (!layout.text.empty()) {
    text.yaml += commented("      text: " + spec::print_text(layout.text), "its words are the inputs");
    text.yaml += commented("      max_length: 256", "of the words of a text; longer ones lose their end");
  }
  if (!layout.ignored.empty()) {
    if (layout.text.empty()) text.yaml += "      inputs: " + list_of(layout.inputs) + "\n";
    std::vector<std::string> columns;
    for (const input::TableLayout::Ignored& ignored : layout.ignored) {
      columns.push_back((ignored.column.empty() ? "one without a name" : in_a_line(ignored.column)) + " (" +
                        ignored.why + ")");
    }
    text.comments.push_back("Left out of the inputs: " + join(columns, ", ") + ".");
  }
  for (const input::TableLayout::Ignored& ignored : layout.ignored) {
    if (!ignored.has_categories) continue;
    text.comments.push_back("To use '" + in_a_line(ignored.column) + "' all the same, add it to inputs and to " +
                            "categorical, and begin the layers with table_embedding.");
  }
  for (const std::string& column : layout.numbers_of_rows) {
    text.comments.push_back(
        "Column '" + in_a_line(column) + "' has another whole number in each row: if it only names the rows, " +
        (layout.ignored.empty() ? "exclude: " + list_of({column}) + " leaves it out." : "remove it from inputs."));
  }
  text.comments.insert(text.comments.end(), layout.notes.begin(), layout.notes.end());
  if (!layout.categorical.empty()) {
    text.yaml += commented("      categorical: " + list_of(layout.categorical),
                           embeds_categories(layout) ? "texts: table_embedding has a row for each of them"
                                                     : "texts: one input for each of them");
  }
  if (!layout.categorical.empty()) {
    text.yaml += commented("      unknown: ignore", "texts that the training examples do not have count as none");
  }
  if (!layout.missing_values.empty()) {
    text.yaml += commented("      missing_values: " + list_of(layout.missing_values), "these mean a missing number");
  }
  if (!layout.missing_categories.empty()) {
    text.yaml += commented("      missing_categories: " + list_of(layout.missing_categories),
                           "in columns of texts these mean an empty cell");
  }
  if (layout.encoding != data::TextEncoding::utf8) {
    text.yaml += commented(fmt::format("      encoding: {}", input::name_of(layout.encoding)), "a guess by its bytes");
  }
  if (!layout.dated_by.empty()) {
    text.comments.push_back("Rows are in the order of the dates in '" + in_a_line(layout.dated_by) +
                            "', so validation takes the last ones: shuffle: false.");
  }
  if (layout.has_missing) {
    text.yaml += commented("      missing: fill", "empty cells: the mean of numbers, a category of their own");
  }
  if (layout.has_stray_texts) text.yaml += skipping();
  if (!layout.header) text.yaml += commented("      header: false", "columns are named by their number, from 0");
  if (layout.delimiter == '\t') text.yaml += "      delimiter: \"\\t\"\n";
  if (layout.delimiter == ';' || layout.delimiter == '|') {
    text.yaml += fmt::format("      delimiter: \"{}\"\n", layout.delimiter);
  }
  return text;
}

}  // namespace pmaptrain::app
