// Text and tables for a terminal that may be narrow.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pmaptrain {

// The columns to which help is filled, where a terminal is wider or there is none.
constexpr int text_width = 100;

// Terminal columns of a text without its ANSI sequences.
int shown_width(std::string_view text);

// Breaks the lines of `text` that are wider than `columns` between words; 0 or less: there is no terminal, and the text
// stays as it is. What goes on in a further line is indented by `indent` columns more than its line, by fewer in a very
// narrow terminal.
//
// What a user may copy stays whole, for a terminal that folds a line leaves it whole too: a word, `code`, 'a name', and
// a command. That is "pmaptrain" and its arguments, behind a colon or alone in a line all that follows.
std::string wrapped(std::string_view text, int columns, int indent = 2);

// The words of `text` in lines of at most `columns` columns: the first line begins behind `indent` columns, the others
// with as many spaces. A word that is longer has a line of its own.
std::string filled(std::string_view text, int columns, int indent = 0);

// `text`, whose lines were broken at a fixed width, for `columns` columns: its paragraphs are filled anew. A line that
// begins with a space, such as a command, is no part of one.
std::string refilled(std::string_view text, int columns);

// A name and what it means: "--seed N" and "the seed of all random numbers".
struct Definition {
  std::string name, meaning;
};
// One below another, filled to `columns` columns (0 or less: there is no terminal, and each has one line): the meanings
// in a column beside the names, but below those of more than `widest_name` columns (0: of none). Where this leaves them
// little room, they are all below their names.
std::string definitions(const std::vector<Definition>& all, int columns, int widest_name = 0);

// The columns of a table of these widths as bands, which are shown one under another: each has the first column and as
// many of the others as fit into `columns` with two spaces before every column, but at least one; a column without text
// has no band of its own. One band if there is no terminal (0 or less).
std::vector<std::vector<std::size_t>> bands_of(const std::vector<int>& widths, int columns);

// The lines of a table, with two spaces before every column: the first is aligned left, as are the others unless
// `right` marks them. In a terminal of fewer `columns`, its bands (bands_of()) with an empty line between them. The
// first `bold` rows are set in bold by ANSI sequences.
std::string in_columns(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right,
                       int columns = 0, std::size_t bold = 0);
// The terminal columns of such a table in one band.
int columns_of_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace pmaptrain
