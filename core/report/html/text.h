// Text in HTML. Names of runs, classes and files may contain anything.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace pmaptrain::report {

// Text for elements and for attributes in quotes. Control characters and bytes that are not UTF-8 become U+FFFD.
std::string escaped(std::string_view text);

// A document for a script element of type application/json: it contains no '<', with which an end tag or a comment
// would begin.
std::string script_json(const nlohmann::ordered_json& document);

// A cell of a table: its contents are HTML.
struct Cell {
  std::string html;
  const char* classes = "";  // of the cell
};
Cell text_cell(std::string_view text);    // escaped
Cell number_cell(std::string_view text);  // escaped, aligned right

// A table that scrolls by itself where the page is narrow. The first cell of each row is its header. `label` is for
// screen readers.
std::string table(std::string_view label, const std::vector<Cell>& head, const std::vector<std::vector<Cell>>& rows,
                  std::string_view classes = "");

// A section with a heading. `id` is that of the link to it.
std::string section(std::string_view id, std::string_view title, std::string_view html);

// A paragraph of text, escaped; `note` for what is missing.
std::string paragraph(std::string_view text);
std::string note(std::string_view text);

// Bars with a name before and an amount behind each.
struct Bar {
  std::string name, amount;  // escaped by bars()
  double share = 0;          // of the longest bar, from 0 to 1
};
std::string bars(const std::vector<Bar>& all);

}  // namespace pmaptrain::report
