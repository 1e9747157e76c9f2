#include "core/base/wrap.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <limits>
#include <vector>

#include "core/base/text.h"
#include "core/base/utf8.h"

namespace pmaptrain {
namespace {

constexpr std::string_view program = "pmaptrain";
constexpr int least_gap = 2;                  // columns between those of a table
constexpr std::size_t longest_quoted = 1000;  // bytes between quotes: text may have many quotes that nothing closes

bool is_alphanumeric(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// The end of the ANSI sequence at `i`; `i` where there is none.
std::size_t end_of_sequence(std::string_view text, std::size_t i) {
  if (text.substr(i, 2) != "\x1b[") return i;
  return std::min(text.find('m', i), text.size() - 1) + 1;
}

// The end of what is between quotes of the kind that opens at `i`; `i` where no such quotes open there. An apostrophe
// within a word closes nothing.
std::size_t end_of_quoted(std::string_view text, std::size_t i) {
  const char quote = text[i];
  if (quote != '`' && quote != '\'') return i;
  text = text.substr(0, i + longest_quoted);
  for (std::size_t end = text.find(quote, i + 1); end != std::string_view::npos; end = text.find(quote, end + 1)) {
    if (end + 1 == text.size() || !is_alphanumeric(text[end + 1])) return end + 1;
  }
  return i;
}

// The end of the word at `i`, or of the quoted text that begins in front of it.
std::size_t end_of_word(std::string_view text, std::size_t i) {
  while (i < text.size() && (text[i] == '(' || end_of_sequence(text, i) != i)) {
    i = text[i] == '(' ? i + 1 : end_of_sequence(text, i);
  }
  if (i < text.size()) i = end_of_quoted(text, i);
  return std::min(text.find(' ', i), text.size());
}

// Whether a word is an option, a path, a number or a placeholder, as words of a sentence are not.
bool is_argument(std::string_view word) {
  const std::size_t end = word.find_last_not_of(".,;:)");
  word = word.substr(0, end == std::string_view::npos ? 0 : end + 1);
  return word.find_first_of("-/._='\"0123456789") != std::string_view::npos ||
         (!word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; }));
}

// The end of the command whose name ends at `i`: its first argument, and what can be no other word of the sentence.
std::size_t end_of_command(std::string_view text, std::size_t i) {
  for (bool is_first = true; i < text.size(); is_first = false) {
    const std::size_t begin = std::min(text.find_first_not_of(' ', i), text.size());
    const std::size_t end = end_of_word(text, begin);
    if (!is_first && !is_argument(text.substr(begin, end - begin))) break;
    i = end;
    if (i > begin && std::string_view(",;:)").find(text[i - 1]) != std::string_view::npos) break;
  }
  return i;
}

// The end of a command that stands behind a colon or alone: before a comment.
std::size_t end_of_shell_line(std::string_view text, std::size_t i) {
  const std::size_t comment = std::min(text.find(" #", i), text.size());
  return text.find_last_not_of(' ', comment - 1) + 1;
}

// Words in lines of at most `columns` columns, but for words that are longer. The first line begins behind `begin`
// columns, the others with `hanging` spaces.
class Lines {
 public:
  Lines(int columns, int begin, int hanging) : columns_(columns), hanging_(hanging), column_(begin) {}

  // A word of `width` columns, with `gap` spaces before it unless it is the first; a new line begins with it where
  // there is no room for `needed` columns.
  void put(std::string_view word, int width, int gap, int needed) {
    if (is_first_) gap = 0;
    if (!is_first_ && column_ + gap + needed > columns_) {
      text_ += '\n';
      gap = hanging_;
      column_ = 0;
    }
    text_.append(static_cast<std::size_t>(gap), ' ');
    text_ += word;
    column_ += gap + width;
    is_first_ = false;
  }
  int column() const { return column_; }
  const std::string& text() const { return text_; }

 private:
  int columns_, hanging_, column_;
  bool is_first_ = true;
  std::string text_;
};

// One line. `is_later`: it is not the first of its text, so it may be a command alone.
std::string wrapped_line(std::string_view line, int columns, int indent, bool is_later) {
  if (shown_width(line) <= columns) return std::string(line);
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const int hanging = std::min(static_cast<int>(begin) + indent, columns / 4);
  Lines lines(columns, static_cast<int>(begin), hanging);
  int remaining = shown_width(line.substr(begin));                           // columns of the line from `i`
  bool is_alone = is_later && !line.ends_with('.'), is_after_colon = false;  // a sentence is no command
  for (std::size_t i = begin; i < line.size();) {
    const std::size_t word = std::min(line.find_first_not_of(' ', i), line.size());
    std::size_t end = end_of_word(line, word);
    if (line.substr(word, end - word) == program) {
      end = is_alone || is_after_colon ? end_of_shell_line(line, end) : end_of_command(line, end);
    }
    const int width = shown_width(line.substr(word, end - word));
    int gap = static_cast<int>(word - i);
    int needed = width;
    if (gap >= least_gap) {
      // A column of a table: its cell stays whole where a line has room for it, and the gap before it may be shorter,
      // so that it still ends with the others.
      const std::string_view rest = line.substr(word);
      if (const int cell = shown_width(rest.substr(0, rest.find("  "))); hanging + cell <= columns) needed = cell;
      gap = std::clamp(columns - lines.column() - (remaining - gap), least_gap, gap);
    }
    remaining -= static_cast<int>(word - i) + width;
    lines.put(line.substr(word, end - word), width, gap, needed);
    is_alone = false;
    is_after_colon = end > word && line[end - 1] == ':';
    i = end;
  }
  return std::string(line.substr(0, begin)) + lines.text();
}

}  // namespace

int shown_width(std::string_view text) {
  int width = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t end = end_of_sequence(text, i); end != i) {
      i = end;
      continue;
    }
    const Utf8Character character = utf8_at(text, i);
    width += display_width(character.code);
    i += character.bytes;
  }
  return width;
}

std::string wrapped(std::string_view text, int columns, int indent) {
  if (columns <= 0) return std::string(text);
  std::string out;
  for (bool is_later = false;; is_later = true) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += wrapped_line(text.substr(0, end), columns, indent, is_later);
    if (end == text.size()) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string filled(std::string_view text, int columns, int indent) {
  Lines lines(columns, indent, indent);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const int width = shown_width(word);
    text.remove_prefix(std::min(end + 1, text.size()));
    lines.put(word, width, 1, width);
  }
  return lines.text();
}

std::string refilled(std::string_view text, int columns) {
  std::string out, paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) out += filled(paragraph, columns) + '\n';
    paragraph.clear();
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == ' ') {
      end_paragraph();
      out += std::string(line) + '\n';
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + std::string(line);
    }
  }
  end_paragraph();
  return out;
}

std::string definitions(const std::vector<Definition>& all, int columns, int widest_name) {
  constexpr int margin = 2, least_room = 28, indent_below = 6;
  constexpr int most = std::numeric_limits<int>::max();
  if (columns <= 0) columns = most;
  int width = 0;
  for (const Definition& one : all) {
    width = std::max(width, std::min(shown_width(one.name), widest_name > 0 ? widest_name : most));
  }
  const bool all_below = columns - (margin + width + least_gap) < least_room;
  const int indent = all_below ? indent_below : margin + width + least_gap;
  std::string out;
  for (const Definition& one : all) {
    const int end =
        one.name.empty() ? 0 : margin + shown_width(one.name);  // without a name it belongs to the one before
    const bool is_below = end > 0 && (all_below || end + least_gap > indent);
    if (end > 0) out += std::string(margin, ' ') + one.name + (is_below ? "\n" : "");
    out.append(static_cast<std::size_t>(is_below ? indent : indent - end), ' ');
    out += filled(one.meaning, columns, indent) + '\n';
  }
  return out;
}

std::vector<std::vector<std::size_t>> bands_of(const std::vector<int>& widths, int columns) {
  constexpr int gap = 2;
  std::vector<std::vector<std::size_t>> bands{{}};
  int used = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (columns > 0 && widths[i] > 0 && bands.back().size() > 1 && used + gap + widths[i] > columns) {
      bands.push_back({0});
      used = gap + widths[0];
    }
    bands.back().push_back(i);
    used += gap + widths[i];
  }
  return bands;
}

namespace {

std::vector<int> widths_of(const std::vector<std::vector<std::string>>& rows) {
  std::vector<int> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  return widths;
}

}  // namespace

std::string in_columns(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right, int columns,
                       std::size_t bold) {
  const std::vector<int> widths = widths_of(rows);
  std::string out;
  for (const std::vector<std::size_t>& band : bands_of(widths, columns)) {
    if (!out.empty()) out += "\n";
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::string line;
      for (const std::size_t i : band) {
        const std::string cell = i < rows[r].size() ? rows[r][i] : "";
        const std::string gap(static_cast<std::size_t>(widths[i] - display_width(cell)), ' ');
        line += "  " + (i < right.size() && right[i] ? gap + cell : cell + gap);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += r < bold ? "\x1b[1m" + line + "\x1b[0m\n" : line + "\n";
    }
  }
  return out;
}

int columns_of_table(const std::vector<std::vector<std::string>>& rows) {
  int columns = 0;
  for (const int width : widths_of(rows)) columns += 2 + width;
  return columns;
}

}  // namespace pmaptrain
