#include "core/base/error.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/base/utf8.h"
#include "core/base/wrap.h"

namespace pmaptrain {
namespace {

constexpr std::string_view bold = "\x1b[1m", red = "\x1b[1;31m", green = "\x1b[32m", plain = "\x1b[0m";
constexpr std::size_t gutter_width = 5;
constexpr int before_excerpt = 8;     // columns: the gutter and " | "
constexpr int longest_excerpt = 200;  // columns shown of a line; the rest says nothing more
constexpr int least_excerpt = 12;     // columns, however narrow the terminal is; of the text behind a label, too
constexpr int columns_of_tab = 8;     // at most
constexpr std::string_view left_out = "…";

// One character of an excerpt: the text that is shown for it, and the text below it in the caret line unless it is
// underlined.
struct Cell {
  std::string shown;
  int width = 1;
  bool tab = false;
};

// Characters that a terminal would interpret or cannot show are replaced by '?', because an excerpt comes from an
// arbitrary file.
Cell cell_of(std::string_view bytes, const Utf8Character& character) {
  if (character.code == '\t') return {"\t", 1, true};
  if (!character.well_formed || character.code < 0x20 || (character.code >= 0x7F && character.code < 0xA0)) {
    return {"?", 1, false};
  }
  return {std::string(bytes), display_width(character.code), false};
}

// What is shown of a line.
struct Excerpt {
  std::vector<Cell> cells;
  std::size_t caret = 0;                    // the cell of the column; behind all cells where something is missing
  bool is_begun = false, is_ended = false;  // whether the line begins and ends with the cells
};

// The characters up to `most` before and behind the character number `caret` of a line, which may have a million.
Excerpt around(std::string_view line, std::size_t caret, std::size_t most) {
  Excerpt part;
  const std::size_t first = caret > most ? caret - most : 0;
  std::size_t i = 0, number = 0;
  for (; i < line.size() && number < first; ++number) i += utf8_at(line, i).bytes;
  part.is_begun = i == 0;
  part.caret = caret - number;
  for (; i < line.size() && number <= caret + most; ++number) {
    const Utf8Character character = utf8_at(line, i);
    part.cells.push_back(cell_of(line.substr(i, character.bytes), character));
    i += character.bytes;
  }
  part.is_ended = i == line.size();
  return part;
}

// Makes it fit in `room` columns: three tenths of them are before the caret, and more where the line ends soon after.
// A tab is then a space, for where it leads to would depend on what was left out.
void cut(Excerpt& excerpt, int room) {
  std::vector<Cell>& cells = excerpt.cells;
  for (Cell& cell : cells) {
    if (cell.tab) cell = {" ", 1, false};
  }
  excerpt.caret = std::min(excerpt.caret, cells.size());
  std::size_t begin = excerpt.caret, end = excerpt.caret;
  int used = 0;
  const auto grow_left = [&](int most) {
    for (; begin > 0 && used + cells[begin - 1].width <= most; --begin) used += cells[begin - 1].width;
  };
  const auto grow_right = [&](int most) {
    for (; end < cells.size() && used + cells[end].width <= most; ++end) used += cells[end].width;
  };
  const int within = room - 2;  // what is left out at each end is a column
  grow_left(within * 3 / 10);
  grow_right(within);
  grow_left(within);
  excerpt.is_ended = excerpt.is_ended && end == cells.size();
  excerpt.is_begun = excerpt.is_begun && begin == 0;
  cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(end), cells.end());
  cells.erase(cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(begin));
  excerpt.caret -= begin;
}

// The excerpt of a line for a terminal of this width, or for none (0), where a tab counts as one column.
Excerpt excerpt_of(std::string_view line, std::size_t caret, int columns) {
  const int room = columns > 0 ? std::clamp(columns - before_excerpt, least_excerpt, longest_excerpt) : longest_excerpt;
  Excerpt excerpt = around(line, caret, static_cast<std::size_t>(room));
  int width = 0;
  for (const Cell& cell : excerpt.cells) width += cell.tab && columns > 0 ? columns_of_tab : cell.width;
  if (!excerpt.is_begun || !excerpt.is_ended || width > room) cut(excerpt, room);
  return excerpt;
}

class Painter {
 public:
  explicit Painter(bool color) : color_(color) {}
  std::string operator()(std::string_view style, std::string_view text) const {
    if (!color_) return std::string(text);
    return std::string(style) + std::string(text) + std::string(plain);
  }

 private:
  bool color_;
};

std::string gutter(int line) {
  std::string number = line > 0 ? std::to_string(line) : "";
  if (number.size() < gutter_width) number.insert(0, gutter_width - number.size(), ' ');
  return number + " | ";
}

std::string excerpt_lines(const Place& place, const Painter& paint, int columns) {
  const Excerpt excerpt =
      excerpt_of(place.excerpt.text(), place.column > 0 ? static_cast<std::size_t>(place.column) - 1 : 0, columns);
  const std::vector<Cell>& cells = excerpt.cells;
  const std::size_t caret = excerpt.caret;
  std::string text, below, mark;
  if (!excerpt.is_begun) {
    text += left_out;
    below += ' ';
  }
  for (const Cell& cell : cells) text += cell.shown;
  if (!excerpt.is_ended) text += left_out;
  for (std::size_t i = 0; i < caret; ++i) {
    // A column behind the line's end is where something is missing.
    if (i >= cells.size()) {
      below += ' ';
    } else if (cells[i].tab) {
      below += '\t';
    } else {
      below.append(static_cast<std::size_t>(cells[i].width), ' ');
    }
  }
  const std::size_t length = place.length > 1 ? static_cast<std::size_t>(place.length) : 1;
  for (std::size_t i = caret; i < cells.size() && i - caret < length && !(cells[i].tab && i > caret); ++i) {
    mark.append(static_cast<std::size_t>(cells[i].width), '~');
  }
  if (mark.empty()) mark = "~";
  mark[0] = '^';

  std::string result = gutter(place.line) + text + "\n";
  if (place.column > 0) {
    result += std::string(gutter_width, ' ') + " | " + below + paint(green, mark) + "\n";
  }
  return result;
}

// "  help: text", later lines of the text under its first.
std::string labelled(std::string_view label, const std::string& text, const Painter& paint, int columns) {
  const std::string indent(2 + label.size() + 2, ' ');
  const int room = columns > 0 ? std::max(columns - static_cast<int>(indent.size()), least_excerpt) : 0;
  std::string result = "  " + paint(bold, std::string(label) + ":") + " ";
  for (const char c : wrapped(printable(text), room, 0)) {
    result += c;
    if (c == '\n') result += indent;
  }
  return result + "\n";
}

[[noreturn]] void fail(ExitStatus status, std::string_view kind, std::string message, std::string help) {
  throw Error(status, Diagnostic{std::string(kind), {}, std::move(message), std::move(help), {}});
}

}  // namespace

Error::Error(ExitStatus status, std::vector<Diagnostic> diagnostics)
    : std::runtime_error(render(diagnostics)), status_(status), diagnostics_(std::move(diagnostics)) {}

void fail_usage(std::string message, std::string help) {
  fail(ExitStatus::usage, "usage", std::move(message), std::move(help));
}

void fail_data(std::string message, std::string help) {
  fail(ExitStatus::data, "data", std::move(message), std::move(help));
}

void fail_resource(std::string message, std::string help) {
  fail(ExitStatus::resource, "resource", std::move(message), std::move(help));
}

void fail_running(std::string message, std::string help) {
  fail(ExitStatus::failed, "internal", std::move(message), std::move(help));
}

std::string render(const Diagnostic& diagnostic, bool color, int columns) {
  const Painter paint(color);
  const Place& place = diagnostic.place;
  std::string text;
  if (place.known()) {
    std::string where = printable(place.file) + ":";
    if (place.line > 0) where += std::to_string(place.line) + ":";
    if (place.line > 0 && place.column > 0) where += std::to_string(place.column) + ":";
    text += paint(bold, where) + " ";
  }
  text += paint(red, "error:") + " " + printable(diagnostic.message) + "\n";
  text = wrapped(text, columns, 4);
  if (!place.excerpt.text().empty()) text += excerpt_lines(place, paint, columns);
  if (!diagnostic.help.empty()) text += labelled("help", diagnostic.help, paint, columns);
  for (const std::string& note : diagnostic.notes) text += labelled("note", note, paint, columns);
  return text;
}

std::string render(const std::vector<Diagnostic>& diagnostics, bool color, int columns) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) text += render(diagnostic, color, columns);
  return text;
}

}  // namespace pmaptrain
