#include "core/spec/yaml/syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

namespace pmaptrain::spec {
namespace {

std::size_t indent_of(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

// Without indentation, comment and trailing spaces.
std::string_view content_of(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (line.starts_with('#')) return {};
  line = line.substr(0, line.find(" #"));
  const std::size_t end = line.find_last_not_of(" \t");
  return end == std::string_view::npos ? std::string_view{} : line.substr(0, end + 1);
}

bool is_item(std::string_view content) { return content == "-" || content.starts_with("- "); }
bool is_key(std::string_view content) {
  return !is_item(content) && (content.ends_with(':') || content.find(": ") != std::string_view::npos);
}

// The length of the name that the text begins with: letters, digits, '_' and '.'.
std::size_t name_length(std::string_view text) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; };
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_part) - text.begin());
}

struct Bracket {
  char open;
  std::size_t line, column;
};

// The brackets that are open at a position.
std::vector<Bracket> open_brackets(const std::vector<std::string>& lines, std::size_t line, std::size_t column) {
  std::vector<Bracket> open;
  char quote = 0;
  for (std::size_t l = 0; l <= line && l < lines.size(); ++l) {
    const std::string& text = lines[l];
    for (std::size_t c = 0; c < text.size() && (l < line || c < column); ++c) {
      const char at = text[c];
      const bool begins = c == 0 || std::string_view(" \t,[{:").find(text[c - 1]) != std::string_view::npos;
      if (quote != 0) {
        if (quote == '"' && at == '\\') {
          ++c;
        } else if (at == quote) {
          quote = 0;
        }
      } else if ((at == '"' || at == '\'') && begins) {
        quote = at;
      } else if (at == '#' && (c == 0 || text[c - 1] == ' ')) {
        break;
      } else if (at == '[' || at == '{') {
        open.push_back({at, l, c});
      } else if ((at == ']' || at == '}') && !open.empty()) {
        open.pop_back();
      }
    }
  }
  return open;
}

class Explainer {
 public:
  Explainer(const std::vector<std::string>& lines, std::size_t line, std::size_t column, const std::string& message)
      : lines_(lines), line_(std::min(line, lines.size() - 1)), column_(column), message_(message) {}

  SyntaxError explain() const {
    using Explanation = std::optional<SyntaxError> (Explainer::*)() const;
    for (const Explanation rule :
         {&Explainer::tab, &Explainer::bracket, &Explainer::dash_without_space, &Explainer::odd_line,
          &Explainer::mixed_block, &Explainer::second_value, &Explainer::indentation}) {
      if (auto found = (this->*rule)()) return *found;
    }
    return {line_, column_, 1, "this is not YAML: " + message_, general_help()};
  }

 private:
  const std::string& line(std::size_t i) const { return lines_[i]; }
  std::string_view content(std::size_t i) const { return content_of(lines_[i]); }
  bool says(std::string_view words) const { return message_.find(words) != std::string::npos; }

  // The line with content before line `i`.
  std::optional<std::size_t> before(std::size_t i) const {
    while (i-- > 0) {
      if (!content(i).empty()) return i;
    }
    return std::nullopt;
  }
  // The line where the parser gave up and the one before.
  std::vector<std::size_t> suspects() const {
    std::vector<std::size_t> found{line_};
    if (const auto previous = before(line_)) found.push_back(*previous);
    return found;
  }
  SyntaxError whole(std::size_t i, std::string message, std::string help) const {
    const std::size_t start = std::min(line(i).find_first_not_of(" \t"), line(i).size());
    return {i, start, std::max<std::size_t>(1, content(i).size()), std::move(message), std::move(help)};
  }

  std::optional<SyntaxError> tab() const {
    for (const std::size_t i : suspects()) {
      const std::size_t at = line(i).find('\t');
      if (at >= std::min(line(i).find_first_not_of(" \t"), line(i).size())) continue;
      return SyntaxError{i, at, 1, "this line is indented with a tab",
                         "indent with spaces; YAML does not allow tabs there"};
    }
    return std::nullopt;
  }

  std::optional<SyntaxError> bracket() const {
    const char at = column_ < line(line_).size() ? line(line_)[column_] : '\0';
    const bool opens = at == '[' || at == '{';
    const std::vector<Bracket> open = open_brackets(lines_, line_, opens ? column_ + 1 : column_);
    const bool closes = at == ']' || at == '}';
    if (open.empty()) {
      if (!says("flow end") || !closes) return std::nullopt;
      return SyntaxError{line_, column_, 1, std::string("this '") + at + "' closes nothing", "remove it"};
    }
    const Bracket& innermost = open.back();
    if (!says("flow") && innermost.line == line_) return std::nullopt;
    const char close = innermost.open == '[' ? ']' : '}';
    std::string help = std::string("add '") + close + "' at its end";
    if (closes && at != close) help = fmt::format("add '{}' before this '{}'", close, at);
    return SyntaxError{innermost.line, innermost.column, 1, std::string("this '") + innermost.open + "' is not closed",
                       std::move(help)};
  }

  // "-dense: 64"
  std::optional<SyntaxError> dash_without_space() const {
    const std::size_t indent = indent_of(line(line_));
    std::optional<std::size_t> i = line_;
    for (; i && indent_of(line(*i)) >= indent; i = before(*i)) {
      const std::string_view text = content(*i);
      if (text.size() < 2 || text[0] != '-' || std::isalpha(static_cast<unsigned char>(text[1])) == 0) continue;
      const std::size_t length = 1 + name_length(text.substr(1));
      return SyntaxError{*i, indent_of(line(*i)), length,
                         "there is no space after the '-' of '" + std::string(text.substr(0, length)) + "'",
                         "write '- " + std::string(text.substr(1)) + "'"};
    }
    return std::nullopt;
  }

  // Whether the line before with the indentation of line `i` is the item of a list.
  bool follows_item(std::size_t i) const {
    const std::size_t indent = indent_of(line(i));
    auto other = before(i);
    while (other && indent_of(line(*other)) > indent) other = before(*other);
    return other && indent_of(line(*other)) == indent && is_item(content(*other));
  }

  // "key:value", "key = value", a key without ':'.
  std::optional<SyntaxError> odd_line() const {
    for (const std::size_t i : suspects()) {
      const std::string_view text = content(i);
      if (text.ends_with("},") || text.ends_with("],")) {
        return whole(i, "this line ends in ','", "remove the ','; lines are not separated by commas");
      }
      if (is_item(text) || is_key(text)) continue;
      const std::size_t length = name_length(text);
      if (length == 0) continue;
      const std::string name(text.substr(0, length));
      std::string_view rest = text.substr(length);
      if (rest.size() > 1 && rest[0] == ':') {
        return whole(i, "there is no space after the ':' of '" + name + "'",
                     "write '" + name + ": " + std::string(rest.substr(1)) + "'");
      }
      rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
      if (rest.starts_with('=')) {
        rest.remove_prefix(std::min(rest.find_first_not_of(' ', 1), rest.size()));
        return whole(i, "a value stands after ':', not after '='", "write '" + name + ": " + std::string(rest) + "'");
      }
      const bool is_value = !rest.empty() && (std::isalnum(static_cast<unsigned char>(rest[0])) != 0 ||
                                              rest[0] == '[' || rest[0] == '{' || rest[0] == '"');
      if (rest.empty() && follows_item(i)) {
        return whole(i, "there is no '-' in this line, but in the items of the list above", "write '- " + name + "'");
      }
      if (rest.empty() || is_value) {
        return whole(i, "there is no ':' in this line",
                     "write '" + name + ": " + (rest.empty() ? "..." : std::string(rest)) + "'");
      }
    }
    return std::nullopt;
  }

  // List items and keys at one indentation.
  std::optional<SyntaxError> mixed_block() const {
    const std::size_t indent = indent_of(line(line_));
    std::vector<std::size_t> items, keys;
    for (std::optional<std::size_t> i = line_; i && indent_of(line(*i)) >= indent; i = before(*i)) {
      if (indent_of(line(*i)) > indent) continue;
      if (is_item(content(*i))) items.push_back(*i);
      if (is_key(content(*i))) keys.push_back(*i);
    }
    if (items.empty() || keys.empty()) return std::nullopt;
    if (keys.size() < items.size()) {
      return whole(keys.back(), "a key stands among the items of a list",
                   "write '- " + std::string(content(keys.back())) + "'");
    }
    std::string_view item = content(items.back());
    item.remove_prefix(std::min<std::size_t>(2, item.size()));
    return whole(items.back(), "a list item stands among keys",
                 "write '" + std::string(item) + (is_key(item) ? "'" : ": {}'"));
  }

  // "name: a: b"
  std::optional<SyntaxError> second_value() const {
    if (!says("map value")) return std::nullopt;
    const std::size_t first = line(line_).find(": ");
    if (first == std::string::npos || first >= column_) return std::nullopt;
    return SyntaxError{line_, column_, 1, "this line has a second ':'",
                       "write one 'key: value' a line; text that contains ': ' needs quotes"};
  }

  std::optional<SyntaxError> indentation() const {
    const auto previous = before(line_);
    if (!previous || !(says("end of map") || says("end of sequence") || says("map value"))) return std::nullopt;
    const std::size_t indent = indent_of(line(line_)), above = indent_of(line(*previous));
    if (indent == above) return std::nullopt;
    const bool has_value = !content(*previous).ends_with(':');
    if (indent > above && has_value) {
      auto sibling = before(*previous);
      while (sibling && indent_of(line(*sibling)) > indent) sibling = before(*sibling);
      if (sibling && indent_of(line(*sibling)) == indent) {
        return whole(*previous, "this line is indented less than the lines around it",
                     "indent it by " + std::to_string(indent) + ", as line " + std::to_string(*sibling + 1));
      }
      return whole(line_, "this line is indented below a line that has a value",
                   "indent it by " + std::to_string(above) + ", as line " + std::to_string(*previous + 1) +
                       "; or remove the value there");
    }
    // The lines that it could be aligned with.
    std::optional<std::size_t> i = previous;
    std::size_t last = *previous;
    while (i && indent_of(line(*i)) > indent) {
      last = *i;
      i = before(*i);
    }
    if (i && indent_of(line(*i)) == indent) return std::nullopt;
    const auto aligned = [this](std::size_t with) {
      return "line " + std::to_string(with + 1) + ", which is indented by " + std::to_string(indent_of(line(with)));
    };
    return whole(line_, "no line above is indented by " + std::to_string(indent) + " as this one is",
                 "align it with " + aligned(last) + (i && indent_of(line(*i)) > 0 ? ", or with " + aligned(*i) : ""));
  }

  std::string general_help() const {
    if (says("anchor")) return "an alias '*name' needs an anchor '&name' before it";
    if (says("unknown token")) return "text that begins with this character needs quotes";
    return "check the indentation and the quotes around here";
  }

  const std::vector<std::string>& lines_;
  std::size_t line_, column_;
  const std::string& message_;
};

}  // namespace

SyntaxError explain_syntax_error(const std::vector<std::string>& lines, std::size_t line, std::size_t column,
                                 const std::string& message) {
  return Explainer(lines, line, column, message).explain();
}

}  // namespace pmaptrain::spec
