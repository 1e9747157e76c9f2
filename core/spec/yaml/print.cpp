#include "core/spec/yaml/print.h"

#include <string_view>
#include <vector>

#include "core/base/text.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

// A double-quoted scalar: every character of the text survives, and none does anything to a terminal.
std::string quote(const std::string& text) {
  std::string result = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\\') result += '\\';
    if (c == '$' && text.compare(i, 2, "${") == 0) {
      result += "\\x24";  // "${" itself is reserved
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      constexpr std::string_view digits = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      result += std::string("\\x") + digits[byte / 16] + digits[byte % 16];
    } else {
      result += c;
    }
  }
  return result + "\"";
}

bool plain_word(const std::string& text) {
  if (text.empty() ||
      !((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z') || text[0] == '_' || text[0] == '/')) {
    return false;
  }
  for (const char* word : {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}) {
    std::string lower = text;
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (lower == word) return false;
  }
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") ==
         std::string::npos;
}

std::string scalar(const Node& node) {
  if (node.is(Kind::null)) return "null";
  return node.quoted ? print_text(node.text) : node.text;
}

std::string name_of(const Node& key) { return print_text(key.text); }

std::string flow(const Node& node) {
  std::vector<std::string> parts;
  switch (node.kind) {
    case Kind::sequence:
      for (const Node& item : node.items) parts.push_back(flow(item));
      return "[" + join(parts, ", ") + "]";
    case Kind::map:
      for (std::size_t i = 0; i < node.items.size(); ++i) {
        parts.push_back(name_of(node.keys[i]) + ": " + flow(node.items[i]));
      }
      return "{" + join(parts, ", ") + "}";
    default: return scalar(node);
  }
}

}  // namespace

std::string print_value(const Node& value) { return flow(value); }

std::string print_text(const std::string& text) { return plain_word(text) ? text : quote(text); }

}  // namespace pmaptrain::spec
