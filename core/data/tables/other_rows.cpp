#include "core/data/tables/other_rows.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"

namespace pmaptrain::data {
namespace {

// What the cells of a column would be that new data does not have.
std::string cells_to_add(const Csv& csv, const Encoding::Column& column) {
  const std::vector<std::string>& categories = column.categories;
  if (column.missing) {
    return fmt::format("empty cells become its mean in the training split, {:.5g}", *column.missing);
  }
  if (categories.empty()) return "each row needs its number: the run was trained without missing ones";
  if (categories.front().empty()) return "empty cells are a category of their own";
  if (csv.unknown == Unknown::ignore) return "a text that is no category, such as unknown, counts as none of them";
  return "each row needs one of its categories, such as " + shown_cell(categories.front());
}

}  // namespace

void note_unknown(const TableDataset& table, std::string_view where, std::vector<std::string>& notes) {
  constexpr std::size_t most = 5;  // that are named
  for (const TableDataset::UnknownCells& unknown : table.unknown()) {
    std::int64_t cells = 0;
    for (const auto& entry : unknown.cells) cells += entry.second;
    std::vector<std::string> names;
    for (const auto& [text, count] : unknown.cells) {
      if (names.size() == most) break;
      names.push_back((text.empty() ? "empty cells" : shown_cell(text)) +
                      (unknown.cells.size() > 1 ? fmt::format(" ({})", with_commas(count)) : ""));
    }
    const std::string more =
        unknown.cells.size() > most
            ? fmt::format(" and {} more", with_commas(std::ssize(unknown.cells) - static_cast<std::ptrdiff_t>(most)))
            : "";
    const bool one = cells == 1;
    notes.push_back(fmt::format(
        "{}: {} of column '{}' {} {} that the training split does not have, and {} as none of "
        "them: {}{}",
        where, counted(cells, "cell"), shown_name(unknown.column), one ? "has" : "have",
        unknown.cells.size() == 1 ? "a category" : "categories", one ? "counts" : "count", join(names, ", "), more));
  }
}

void note_filled(const TableDataset& table, std::string_view where, const Encoding& encoding,
                 std::vector<std::string>& notes, const TableDataset* train) {
  constexpr std::ptrdiff_t most = 8;  // that are named
  std::ptrdiff_t columns = 0;
  for (std::size_t i = 0; i < encoding.columns.size(); ++i) {
    const std::int64_t cells = table.missing()[i];
    const std::optional<double>& mean = encoding.columns[i].missing;
    if (cells == 0 || !mean || (train != nullptr && train->missing()[i] > 0)) continue;
    if (++columns > most) continue;
    notes.push_back(
        fmt::format("{}: {} of {} of column '{}' {} missing and {} the column's mean in the training "
                    "split, {:.5g}",
                    where, with_commas(cells), counted(table.size(), "cell"), shown_name(encoding.columns[i].name),
                    cells == 1 ? "is" : "are", cells == 1 ? "becomes" : "become", *mean));
  }
  if (columns > most) {
    notes.push_back(fmt::format("{}: {} more with missing numbers, which become means of the training split", where,
                                counted(columns - most, "column")));
  }
}

void note_filled(const std::map<Split, std::shared_ptr<TableDataset>>& splits, const Encoding& encoding,
                 std::vector<std::string>& notes) {
  const auto train = splits.find(Split::train);
  for (const auto& [split, table] : splits) {
    if (split == Split::train) continue;
    note_filled(*table, name_of(split), encoding, notes, train == splits.end() ? nullptr : train->second.get());
  }
}

void check_has_columns(const Csv& csv, const TableText& file, const Encoding& known) {
  const std::vector<std::string> header = header_of(csv, file);
  const std::set<std::string_view> there(header.begin(), header.end());
  std::vector<const Encoding::Column*> lacking;
  for (const Encoding::Column& column : known.columns) {
    if (!there.contains(column.name)) lacking.push_back(&column);
  }
  if (lacking.empty()) return;
  try {
    find_column(header, lacking.front()->name, {}, file.path, csv.header);
  } catch (const Error& error) {
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    std::string& help = diagnostics.front().help;
    help += (help.ends_with('?') ? " Else" : "; else") + (" add the column: " + cells_to_add(csv, *lacking.front()));
    for (std::size_t i = 1; i < lacking.size(); ++i) {
      diagnostics.front().notes.push_back(fmt::format("it has no column '{}' either: {}", shown_name(lacking[i]->name),
                                                      cells_to_add(csv, *lacking[i])));
    }
    throw Error(error.status(), std::move(diagnostics));
  }
}

}  // namespace pmaptrain::data
