// Text in HTML. Names of runs, classes and files may contain anything.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
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
Cell text_cell(std::string_view text);                  // escaped
Cell number_cell(std::string_view text);                // escaped, aligned right
Cell marked_cell(std::string_view text, bool is_best);  // a number or a name, with a mark if it is the best
Cell value_cell(const std::string& value);              // shown_value(), aligned right if it is a number

// The finite number that a text is.
std::optional<double> number_in(const std::string& text);
// A number with at most four significant digits and thousands separated: "1,210,000", "0.1188", "2.1e+11".
std::string shown_number(double value);
// A value of a config or a result as a text: numbers as shown_number(), whole ones with all their digits.
std::string shown_value(const std::string& value);

// A table. Where it is wider than the page, each row becomes a list (page.js). The first cell of each row is its
// header. `label` is for screen readers.
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
