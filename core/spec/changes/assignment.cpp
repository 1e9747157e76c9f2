#include "core/spec/changes/assignment.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "core/base/text.h"
#include "core/spec/keys/check.h"
#include "core/spec/yaml/parse.h"
#include "core/spec/yaml/report.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

std::shared_ptr<Text> option_text(const std::string& option, const std::string& argument) {
  auto text = std::make_shared<Text>();
  text->file = option;
  text->lines = split_lines(argument);
  text->option = true;
  return text;
}

Node at_column(const std::shared_ptr<const Text>& text, int column, int length) {
  Node node;
  node.source = text;
  node.line = 1;
  node.column = column;
  node.length = length;
  return node;
}

// The equivalent of Hydra's syntax in --set, for "~key", "+key=value", "layers[0].dense=8". Empty for anything else.
std::string hydra_help(const std::string& argument) {
  const std::string key = argument.substr(0, argument.find('='));
  if (key.starts_with('~')) return "'=null' restores the default of a key: write " + key.substr(1) + "=null";
  if (const std::size_t begin = key.find_first_not_of('+'); begin != 0 && begin != std::string::npos) {
    return "--set adds keys as it replaces them: write " + argument.substr(begin);
  }
  std::string written;
  std::size_t indices = 0;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const std::size_t end = key[i] == '[' && i > 0 ? key.find(']', i) : std::string::npos;
    const bool is_index = end != std::string::npos && end > i + 1 &&
                          key.substr(i + 1, end - i - 1).find_first_not_of("0123456789") == std::string::npos;
    if (!is_index) {
      written += key[i];
      continue;
    }
    written += "." + key.substr(i + 1, end - i - 1);
    i = end;
    ++indices;
  }
  if (indices == 0 || key.find_first_of("\"'") != std::string::npos) return "";
  return "an item of a list is written after a dot: " + written + argument.substr(key.size());
}

}  // namespace

std::optional<Assignment> parse_assignment(const std::string& argument, std::vector<Diagnostic>& errors,
                                           const std::string& option) {
  const Reporter reporter(errors);
  const std::shared_ptr<const Text> text = option_text(option, argument);
  if (!is_utf8(argument)) {
    reporter.report(at_column(text, 0, 1), "this argument is not valid UTF-8", "");
    return std::nullopt;
  }
  if (const std::string help = hydra_help(argument); !help.empty()) {
    const std::string key = argument.substr(0, argument.find('='));
    reporter.report(at_column(text, 1, count_characters(key)), "'" + key + "' is not how " + option + " writes a key",
                    help);
    return std::nullopt;
  }
  Assignment result;
  std::string segment;
  char quote = 0;
  bool was_quoted = false;
  std::size_t start = 0;
  const auto here = [&](std::size_t at, std::size_t end) {
    return at_column(text, count_characters(std::string_view(argument).substr(0, at)) + 1,
                     std::max(1, count_characters(std::string_view(argument).substr(at, end - at))));
  };
  const bool changes = option == "--change";
  const std::string form = changes ? "write --change key=value, such as --change optimizer.learning_rate=0.001"
                                   : "write --set key=value, such as --set data.batch_size=64";
  for (std::size_t i = 0; i < argument.size(); ++i) {
    const char c = argument[i];
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        segment += c;
      }
      continue;
    }
    if ((c == '"' || c == '\'') && segment.empty() && !was_quoted) {
      quote = c;
      was_quoted = true;
      continue;
    }
    if (c != '.' && c != '=') {
      segment += c;
      continue;
    }
    if (segment.empty()) {
      reporter.report(here(i, i + 1), "a part of the key is empty", form);
      return std::nullopt;
    }
    result.segments.push_back(scalar_at(here(start, i), segment));
    segment.clear();
    was_quoted = false;
    start = i + 1;
    if (c == '.') continue;
    const int offset = count_characters(std::string_view(argument).substr(0, i + 1));
    const std::size_t known = errors.size();
    result.value = parse_yaml(argument.substr(i + 1), text, offset, errors);
    if (!result.value.valid() && errors.size() > known) return std::nullopt;
    if (!result.value.valid() || result.value.is(Kind::blank)) {
      reporter.report(here(i, i + 1), "there is no value after '='",
                      changes ? "write the new value" : "write a value; '=null' restores the default");
      return std::nullopt;
    }
    return result;
  }
  reporter.report(here(0, argument.size()),
                  quote != 0 ? "unclosed quote in the key" : "there is no '=' in this argument", form);
  return std::nullopt;
}

Node option_value(const std::string& option, const std::string& value) {
  const auto text = option_text(option, option + " " + value);
  Node node = scalar_at(at_column(text, static_cast<int>(option.size()) + 2, count_characters(value)), value);
  return node;
}

}  // namespace pmaptrain::spec
