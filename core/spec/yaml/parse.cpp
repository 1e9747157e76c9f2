#include "core/spec/yaml/parse.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <sstream>

#include "core/base/text.h"
#include "core/spec/yaml/readable.h"
#include "core/spec/yaml/syntax.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

constexpr std::string_view reserved_message = "'${' is reserved; there is no substitution in a config";
constexpr std::string_view reserved_help =
    "write the value itself; for a literal '${' write \"\\x24{\" in double quotes";

bool ends_token(char c) { return c == ' ' || c == ',' || c == ']' || c == '}' || c == '\t' || c == '#'; }

// The number of bytes of the token, quoted text or bracketed collection at `start`, within its line.
std::size_t token_bytes(std::string_view line, std::size_t start) {
  if (start >= line.size()) return 1;
  const char first = line[start];
  if (first == '&' || first == '*' || first == '!') {
    std::size_t end = start + 1;
    while (end < line.size() && !ends_token(line[end])) ++end;
    return end - start;
  }
  int depth = 0;
  char quote = 0;
  for (std::size_t i = start; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (quote == '"' && c == '\\') {
        ++i;
      } else if (c == quote) {
        quote = 0;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    }
    if (quote == 0 && depth <= 0) return i + 1 - start;
  }
  return line.size() - start;
}

class Builder : public YAML::EventHandler {
 public:
  Builder(const std::string& text, std::shared_ptr<const Text> source, int offset, std::vector<Diagnostic>& errors)
      : parsed_lines_(split_lines(text)), source_(std::move(source)), offset_(offset), errors_(errors) {}

  Node take_root() { return std::move(root_); }

  // Throws, because parsing cannot continue.
  [[noreturn]] void stop(const Node& at, std::string message, std::string help) const {
    throw Error(ExitStatus::usage, Diagnostic{kind_of(at), place_of(at), std::move(message), std::move(help), {}});
  }

  // The characters of a line in front of a byte. Marks are near each other, and a line may hold a whole data set, so
  // the count begins at the mark before.
  int characters_before(int number, std::size_t byte) const {
    if (counted_.line != number) counted_ = {number, 0, 0};
    const std::string_view line = parsed_lines_[static_cast<std::size_t>(number)];
    if (byte >= counted_.byte) {
      counted_.characters += count_characters(line.substr(counted_.byte, byte - counted_.byte));
    } else {
      counted_.characters -= count_characters(line.substr(byte, counted_.byte - byte));
    }
    counted_.byte = byte;
    return counted_.characters;
  }

  Node at(const YAML::Mark& mark, Kind kind) const {
    Node node;
    node.kind = kind;
    node.source = source_;
    if (mark.line < 0 || static_cast<std::size_t>(mark.line) >= parsed_lines_.size()) return node;
    const std::string& line = parsed_lines_[static_cast<std::size_t>(mark.line)];
    const auto column = std::min(static_cast<std::size_t>(std::max(mark.column, 0)), line.size());
    node.line = mark.line + 1;
    node.column = characters_before(mark.line, column) + 1 + (mark.line == 0 ? offset_ : 0);
    const std::size_t bytes = token_bytes(line, column);
    node.length = std::max(1, count_characters(std::string_view(line).substr(column, bytes)));
    return node;
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) {
      const Node here = at(mark, Kind::invalid);
      // yaml-cpp begins a new document, without a marker, at text that cannot follow a list or a scalar.
      const auto lines = std::span(parsed_lines_).first(here.line > 0 ? static_cast<std::size_t>(here.line) : 0);
      const bool ended =
          std::any_of(lines.begin(), lines.end(), [](const auto& line) { return line.starts_with("..."); });
      const bool said = !lines.empty() && lines.back().starts_with("---");
      stop(here, "a second document begins here; a config is one document",
           is_first_indented() ? "the first key is indented; keys of the config begin in column 1"
           : ended             ? "remove the '...' line, which ends a document"
           : said              ? "remove the '---' line, or put the second config in a separate file"
                               : "write 'key: value' lines");
    }
  }
  void OnDocumentEnd() override {}
  bool is_first_indented() const {
    const auto first = std::find_if(parsed_lines_.begin(), parsed_lines_.end(), [](const std::string& line) {
      const std::size_t at = line.find_first_not_of(' ');
      return at != std::string::npos && line[at] != '#';
    });
    return first != parsed_lines_.end() && first->starts_with(" ");
  }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node = at(mark, Kind::blank);
    if (node.line > 0) {
      std::string_view rest = parsed_lines_[static_cast<std::size_t>(mark.line)];
      rest.remove_prefix(std::min(rest.size(), static_cast<std::size_t>(mark.column)));
      for (std::string_view word : {"null", "Null", "NULL", "~"}) {
        if (!rest.starts_with(word)) continue;
        if (rest.size() > word.size() && !ends_token(rest[word.size()])) continue;
        node.kind = Kind::null;
        node.length = static_cast<int>(word.size());
      }
    }
    if (node.is(Kind::blank) && !stack_.empty() && stack_.back().node.is(Kind::sequence)) {
      if (const std::optional<YAML::Mark> dash = dash_before(mark)) node = at(*dash, Kind::blank);
    }
    place(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const Node here = at(mark, Kind::invalid);
    const auto found = finished_.find(anchor);
    if (found == finished_.end()) {
      stop(here, "this alias refers to a value that contains it", "write the value out");
    }
    alias_nodes_ += count(found->second);
    if (alias_nodes_ > max_alias_nodes) {
      stop(here, "the aliases of this file expand to more than 100,000 values", "use fewer nested aliases");
    }
    Node copy = found->second;
    if (stack_.size() + depth_of(copy) > static_cast<std::size_t>(max_depth)) too_deep(here);
    copy.source = here.source;
    copy.line = here.line;
    copy.column = here.column;
    copy.length = here.length;
    place(std::move(copy), 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = at(mark, Kind::scalar);
    expect_closed(mark);
    node.text = value;
    node.quoted = tag == "!";
    const std::string& line = node.line > 0 ? parsed_lines_[static_cast<std::size_t>(mark.line)] : empty_;
    const auto column = static_cast<std::size_t>(std::max(mark.column, 0));
    if (column < line.size() && std::string_view("&!\"'").find(line[column]) == std::string_view::npos &&
        !node.quoted) {
      // A plain scalar ends with its text. If it has several lines, the first one is underlined.
      node.length = std::max(1, count_characters(value));
    }
    refuse_tag(node, tag, mark);
    if (value.find("${") != std::string::npos && !is_spelt_out(mark)) {
      report(node, std::string(reserved_message), std::string(reserved_help));
      node.kind = Kind::invalid;
    }
    place(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Kind::sequence);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Kind::map);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    Node node;
    YAML::anchor_t anchor = 0;
    std::optional<Node> key;     // of a map, before its value
    std::set<std::string> seen;  // of a map
    bool dropped = false;        // the key was refused; its value is discarded
    bool merges = false;         // the key is '<<'
    std::vector<Node> merged{};  // of a map: the maps that '<<' names, the first of which counts most
  };

  static int count(const Node& node) {
    int nodes = 1;
    for (const Node& item : node.items) nodes += count(item);
    return nodes;
  }

  static std::size_t depth_of(const Node& node) {
    std::size_t depth = 0;
    for (const Node& item : node.items) depth = std::max(depth, depth_of(item));
    return depth + 1;
  }

  [[noreturn]] void too_deep(const Node& where) const {
    stop(where, "this is nested more than 64 levels deep", "check for an unclosed bracket");
  }

  // yaml-cpp gives an empty list item the place of the next token, which may be many lines later. The '-' of the item
  // is the last token before that, apart from comments, an anchor and a tag. Lists in brackets have no '-'.
  std::optional<YAML::Mark> dash_before(const YAML::Mark& mark) const {
    auto line = std::min(static_cast<std::size_t>(std::max(mark.line, 0)), parsed_lines_.size() - 1);
    bool first = static_cast<std::size_t>(std::max(mark.line, 0)) == line;
    while (true) {
      std::string_view rest = parsed_lines_[line];
      if (first) rest = rest.substr(0, static_cast<std::size_t>(std::max(mark.column, 0)));
      first = false;
      for (std::size_t i = rest.find('#'); i < rest.size(); i = rest.find('#', i + 1)) {
        if (i == 0 || rest[i - 1] == ' ' || rest[i - 1] == '\t') rest = rest.substr(0, i);
      }
      while (true) {
        rest = rest.substr(0, rest.find_last_not_of(" \t") + 1);
        const std::size_t word = rest.find_last_of(" \t") + 1;
        if (word >= rest.size() || (rest[word] != '&' && rest[word] != '!')) break;
        rest = rest.substr(0, word);
      }
      if (!rest.empty()) {
        if (rest.back() != '-') return std::nullopt;
        YAML::Mark dash = mark;
        dash.line = static_cast<int>(line);
        dash.column = static_cast<int>(rest.size()) - 1;
        return dash;
      }
      if (line-- == 0) return std::nullopt;
    }
  }

  // yaml-cpp accepts the end of the text as a closing quote.
  void expect_closed(const YAML::Mark& mark) const {
    auto line = static_cast<std::size_t>(mark.line);
    auto column = static_cast<std::size_t>(mark.column);
    if (mark.line < 0 || line >= parsed_lines_.size()) return;
    // Anchors and tags precede the text.
    for (const std::string& text = parsed_lines_[line];
         column < text.size() && (text[column] == '&' || text[column] == '!');) {
      column = std::min(text.find_first_not_of(" \t", std::min(text.find_first_of(" \t", column), text.size())),
                        text.size());
    }
    if (column >= parsed_lines_[line].size()) return;
    const char quote = parsed_lines_[line][column];
    if (quote != '"' && quote != '\'') return;
    YAML::Mark opened = mark;
    opened.column = static_cast<int>(column);
    for (++column; line < parsed_lines_.size(); ++line, column = 0) {
      const std::string& text = parsed_lines_[line];
      for (; column < text.size(); ++column) {
        const bool escape = quote == '"' ? text[column] == '\\' : text.compare(column, 2, "''") == 0;
        if (escape) {
          ++column;
        } else if (text[column] == quote) {
          return;
        }
      }
    }
    Node at_quote = at(opened, Kind::invalid);
    at_quote.length = 1;
    stop(at_quote, "this quote is not closed", std::string("add ") + quote + " at the end of the text");
  }

  // Whether this is text in double quotes in which each "${" is escaped, as print_config() writes it. Such text is
  // literal.
  bool is_spelt_out(const YAML::Mark& mark) const {
    auto at = static_cast<std::size_t>(std::max(mark.line, 0));
    if (mark.line < 0 || at >= parsed_lines_.size()) return false;
    std::string_view line = parsed_lines_[at];
    line.remove_prefix(std::min(static_cast<std::size_t>(std::max(mark.column, 0)), line.size()));
    if (line.starts_with('&')) {  // an anchor precedes its value
      line.remove_prefix(std::min(line.find(' '), line.size()));
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    }
    if (!line.starts_with('"')) return false;
    line.remove_prefix(1);
    while (true) {  // to the closing quote, over lines
      for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '"') return true;
        if (line.substr(i).starts_with("${")) return false;
        if (line[i] == '\\') ++i;
      }
      if (++at >= parsed_lines_.size()) return false;
      line = parsed_lines_[at];
    }
  }

  void report(const Node& node, std::string message, std::string help) {
    errors_.push_back(Diagnostic{kind_of(node), place_of(node), std::move(message), std::move(help), {}});
  }

  void refuse_tag(const Node& node, const std::string& tag, const YAML::Mark& mark) {
    const bool written =
        node.line > 0 &&
        static_cast<std::size_t>(mark.column) < parsed_lines_[static_cast<std::size_t>(mark.line)].size() &&
        parsed_lines_[static_cast<std::size_t>(mark.line)][static_cast<std::size_t>(mark.column)] == '!';
    if (!written && (tag.empty() || tag == "?" || tag == "!")) return;
    report(node, "YAML tags are not supported", "remove the tag; the key determines the type");
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Kind kind) {
    Node node = at(mark, kind);
    refuse_tag(node, tag, mark);
    if (stack_.size() >= static_cast<std::size_t>(max_depth)) too_deep(node);
    stack_.push_back(Frame{std::move(node), anchor, std::nullopt, {}, false});
  }

  void close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    if (!frame.merged.empty()) merge(frame);
    place(std::move(frame.node), frame.anchor);
  }

  // As YAML 1.1 has it (https://yaml.org/type/merge.html): a key of the map itself counts, wherever '<<' stands, else
  // that of the first of the merged maps that has it. Merged keys keep their places in the text.
  static void merge(Frame& frame) {
    for (Node& map : frame.merged) {
      for (std::size_t i = 0; i < map.keys.size(); ++i) {
        if (frame.node.find(map.keys[i].text) != nullptr) continue;
        frame.node.add(std::move(map.keys[i]), std::move(map.items[i]));
      }
    }
  }

  // The value of '<<'.
  void take_merged(Frame& frame, Node value) {
    const bool is_list = value.is(Kind::sequence);
    std::vector<Node> maps = is_list ? std::move(value.items) : std::vector<Node>{std::move(value)};
    for (Node& map : maps) {
      if (map.is(Kind::map)) {
        frame.merged.push_back(std::move(map));
      } else if (map.valid()) {
        report(map.is(Kind::blank) ? *frame.key : map,
               "'<<' takes a map or a list of maps" + (map.is(Kind::blank) ? "" : ", not " + describe(map)),
               "name the anchor of a map, as in '<<: *base' after 'x-base: &base {...}', or of several: "
               "'<<: [*first, *second]'");
      }
    }
  }

  void place(Node node, YAML::anchor_t anchor) {
    if (anchor != 0) finished_[anchor] = node;
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = stack_.back();
    if (frame.node.kind == Kind::sequence) {
      if (node.is(Kind::blank)) {
        report(node, "this list item has no value", "write its value, or remove the item");
        node.kind = Kind::invalid;
      }
      frame.node.items.push_back(std::move(node));
      return;
    }
    if (!frame.key) {
      take_key(frame, std::move(node));
      return;
    }
    if (frame.merges) {
      take_merged(frame, std::move(node));
    } else if (!frame.dropped) {
      if (node.is(Kind::blank)) node = empty_at(*frame.key, Kind::blank);
      frame.node.add(std::move(*frame.key), std::move(node));
    }
    frame.key.reset();
  }

  void take_key(Frame& frame, Node key) {
    frame.dropped = true;
    frame.merges = false;
    if (key.is(Kind::invalid)) {
      frame.key = std::move(key);
      return;
    }
    if (!key.is(Kind::scalar)) {
      report(key, "a key must be a name, not " + describe(key), "write 'key: value'");
    } else if (!frame.seen.insert(key.text).second) {
      int first = 0;
      for (const Node& other : frame.node.keys) {
        if (other.text == key.text) first = other.line;
      }
      report(key, "duplicate key '" + key.text + "'",
             first == 0 ? "a list merges several maps: '<<: [*first, *second]'"
                        : "keep one of the two; the first is in line " + std::to_string(first));
    } else {
      frame.merges = key.text == "<<" && !key.quoted;
      frame.dropped = frame.merges;
    }
    frame.key = std::move(key);
  }

  std::vector<std::string> parsed_lines_;
  struct Counted {
    int line = -1;
    std::size_t byte = 0;
    int characters = 0;
  };
  mutable Counted counted_;  // what characters_before() has counted last
  std::shared_ptr<const Text> source_;
  int offset_;
  std::vector<Diagnostic>& errors_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, Node> finished_;
  int alias_nodes_ = 0;
  int documents_ = 0;
  std::string empty_;
  Node root_;
};

}  // namespace

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    std::size_t stop = end;
    if (stop > start && text[stop - 1] == '\r') --stop;
    lines.push_back(text.substr(start, stop - start));
    start = end + 1;
  }
  return lines;
}

Node parse_yaml(const std::string& text, std::shared_ptr<const Text> source, int offset,
                std::vector<Diagnostic>& errors) {
  check_readable(text, source, offset);
  Builder builder(text, source, offset, errors);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& failure) {
    // yaml-cpp reports an unclosed quote at the end of the text; with a line end, expect_closed() reports where it
    // opens.
    if (failure.msg == YAML::ErrorMsg::EOF_IN_SCALAR && !text.ends_with('\n')) {
      return parse_yaml(text + "\n", std::move(source), offset, errors);
    }
    const Node at = builder.at(failure.mark, Node::Kind::invalid);
    const Place place = place_of(at);
    if (const std::string_view line = place.excerpt.text(); failure.mark.line >= 0) {
      // In a list or map on one line '{' opens a map, so "${x}" is a syntax error.
      if (const std::size_t found = line.find("${"); found != std::string_view::npos) {
        Node dollar = at;
        dollar.column = count_characters(line.substr(0, found)) + 1;
        dollar.length = 2;
        builder.stop(dollar, std::string(reserved_message), std::string(reserved_help));
      }
    }
    if (failure.mark.line < 0) builder.stop(at, "this is not YAML: " + failure.msg, "");
    const SyntaxError error =
        explain_syntax_error(split_lines(text), static_cast<std::size_t>(failure.mark.line),
                             static_cast<std::size_t>(std::max(failure.mark.column, 0)), failure.msg);
    YAML::Mark wrong;
    wrong.line = static_cast<int>(error.line);
    wrong.column = static_cast<int>(error.column);
    Node where = builder.at(wrong, Node::Kind::invalid);
    if (error.line != static_cast<std::size_t>(failure.mark.line) || error.length > 1) {
      where.length = static_cast<int>(error.length);
    }
    builder.stop(where, error.message, error.help);
  }
  Node root = builder.take_root();
  if (!root.source) root.source = std::move(source);
  return root;
}

Node parse_own(const std::string& text) {
  std::vector<Diagnostic> errors;
  auto source = std::make_shared<Text>();
  source->lines = split_lines(text);
  return parse_yaml(text, source, 0, errors);
}

}  // namespace pmaptrain::spec
