#include "core/data/tables/class_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/tables/csv_reader.h"

namespace pmaptrain::data {
namespace {

constexpr std::size_t most_whole_classes = 1000;  // that may be written as 1.0

// Whether a name is, or ends as, a text of a list in the notation of Python or JSON: "['a'", "'b'".
bool is_of_notation(std::string_view name) {
  const auto quote = [](char c) { return c == '\'' || c == '"'; };
  if (name.size() < 2) return false;
  const bool begins = name.front() == '[' && (quote(name[1]) || name.back() == ']');
  const bool ends = name.back() == ']' && quote(name[name.size() - 2]);
  return begins || ends || (quote(name.front()) && name.front() == name.back());
}

}  // namespace

std::vector<std::string> sorted_texts(const Dictionary& dictionary) {
  std::vector<std::string> texts;
  for (const Dictionary::Entry& entry : dictionary.entries()) texts.push_back(entry.text);
  std::sort(texts.begin(), texts.end());
  return texts;
}

bool name_classes(const Table& table) {
  if (table.target != Table::Target::integers && table.target != Table::Target::numbers) return false;
  std::set<double> values;
  for (const double number : table.numbers) {
    if (number != std::trunc(number) || values.size() > most_whole_classes) return false;
    values.insert(number);
  }
  if (values.size() < 2) return false;
  const double low = *values.begin(), high = *values.rbegin();
  if (low == -1) return high <= 1;
  if (values.size() == 2 && table.target == Table::Target::numbers) return true;
  const bool is_sequence = high - low + 1 == static_cast<double>(values.size());
  return table.target == Table::Target::numbers && (low == 0 || low == 1) && is_sequence;
}

bool is_whole(const std::string& text) {
  const CellNumber number = to_number(text);
  return number.kind == CellNumber::Kind::number && number.integer;
}

std::vector<std::string> labels_in(std::string_view cell, std::string_view separator) {
  std::vector<std::string> labels;
  while (!cell.empty()) {
    const std::size_t end = cell.find(separator);
    std::string_view label = cell.substr(0, end);
    while (!label.empty() && label.front() == ' ') label.remove_prefix(1);
    while (!label.empty() && label.back() == ' ') label.remove_suffix(1);
    if (!label.empty()) labels.emplace_back(label);
    cell = end == std::string_view::npos ? std::string_view() : cell.substr(end + separator.size());
  }
  return labels;
}

std::vector<std::string> texts_of(const std::vector<ColumnName>& names) {
  std::vector<std::string> texts;
  texts.reserve(names.size());
  for (const ColumnName& name : names) texts.push_back(name.text);
  return texts;
}

std::vector<std::string> classes_of(const Csv& csv, const Table& table) {
  if (!csv.classes.empty()) return texts_of(csv.classes);
  if (table.target != Table::Target::texts) return {};
  if (!csv.label_separator) return sorted_texts(table.texts);
  std::set<std::string> labels;
  for (const Dictionary::Entry& entry : table.texts.entries()) {
    for (std::string& label : labels_in(entry.text, *csv.label_separator)) labels.insert(std::move(label));
  }
  if (labels.empty()) {
    fail_data(fmt::format("no cell of column {} of the training split has a label", shown_names(csv.target)),
              "name the column with lists of labels");
  }
  return {labels.begin(), labels.end()};
}

std::vector<std::string> notes_on_classes(const Csv& csv, const Table& table, const std::vector<std::string>& classes) {
  std::vector<std::string> notes;
  if (csv.target.size() > 1) return notes;
  if (const auto found = std::find_if(classes.begin(), classes.end(), is_of_notation); found != classes.end()) {
    notes.push_back(
        fmt::format("the {} {} of column {} has brackets or quotes, which are part of its name: lists "
                    "are not read in the notation of Python or JSON, but as art;music with "
                    "label_separator: \";\"",
                    csv.label_separator ? "label" : "class", shown_cell(*found), shown_names(csv.target)));
  }
  if (csv.classes.empty()) return notes;
  std::set<std::string> there;
  for (const Dictionary::Entry& entry : table.texts.entries()) {
    if (csv.label_separator) {
      for (std::string& label : labels_in(entry.text, *csv.label_separator)) there.insert(std::move(label));
    } else {
      there.insert(entry.text);
    }
  }
  std::vector<std::string> missing;
  for (const std::string& name : classes) {
    if (!there.contains(name)) missing.push_back(shown_cell(name));
  }
  if (missing.empty()) return notes;
  notes.push_back(fmt::format("classes lists {}, which no row of the training split has", join(missing, ", ")));
  return notes;
}

}  // namespace pmaptrain::data
