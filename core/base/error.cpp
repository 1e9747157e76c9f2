#include "core/base/error.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/base/utf8.h"

namespace pmaptrain {
namespace {

constexpr std::string_view bold = "\x1b[1m", red = "\x1b[1;31m", green = "\x1b[32m", plain = "\x1b[0m";
constexpr std::size_t gutter_width = 5;
constexpr std::size_t longest_excerpt = 200;  // characters shown of a line; the rest says nothing more
constexpr std::size_t before_caret = 60;      // characters kept before the caret in a longer line

// One character of an excerpt: the text that is shown for it, and the text below it in the caret line unless it is
// underlined.
struct Cell {
  std::string shown;
  int width = 1;
  bool tab = false;
};

// Characters that a terminal would interpret or cannot show are replaced by '?', because an excerpt comes from an
// arbitrary file.
std::vector<Cell> cells_of(std::string_view excerpt) {
  std::vector<Cell> cells;
  for (std::size_t i = 0; i < excerpt.size();) {
    const Utf8Character character = utf8_at(excerpt, i);
    if (character.code == '\t') {
      cells.push_back({"\t", 1, true});
    } else if (!character.well_formed || character.code < 0x20 || (character.code >= 0x7F && character.code < 0xA0)) {
      cells.push_back({"?", 1, false});
    } else {
      cells.push_back({std::string(excerpt.substr(i, character.bytes)), display_width(character.code), false});
    }
    i += character.bytes;
  }
  return cells;
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

std::string excerpt_lines(const Place& place, const Painter& paint) {
  std::vector<Cell> cells = cells_of(place.excerpt);
  std::size_t caret = place.column > 0 ? static_cast<std::size_t>(place.column) - 1 : 0;
  if (cells.size() > longest_excerpt) {
    const std::size_t cut = caret > before_caret ? std::min(caret, cells.size()) - before_caret : 0;
    cells.erase(cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(cut));
    caret -= cut;
    if (cut > 0) {
      cells.insert(cells.begin(), Cell{"...", 3, false});
      ++caret;
    }
    if (cells.size() > longest_excerpt) {
      cells.resize(longest_excerpt);
      cells.push_back({"...", 3, false});
    }
  }
  std::string text, below, mark;
  for (const Cell& cell : cells) text += cell.shown;
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
std::string labelled(std::string_view label, const std::string& text, const Painter& paint) {
  const std::string indent(2 + label.size() + 2, ' ');
  std::string result = "  " + paint(bold, std::string(label) + ":") + " ";
  for (const char c : printable(text)) {
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

std::string render(const Diagnostic& diagnostic, bool color) {
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
  if (!place.excerpt.empty()) text += excerpt_lines(place, paint);
  if (!diagnostic.help.empty()) text += labelled("help", diagnostic.help, paint);
  for (const std::string& note : diagnostic.notes) text += labelled("note", note, paint);
  return text;
}

std::string render(const std::vector<Diagnostic>& diagnostics, bool color) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) text += render(diagnostic, color);
  return text;
}

}  // namespace pmaptrain
