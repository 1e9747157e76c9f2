#include "core/spec/print.h"

#include <vector>

#include "core/base/text.h"
#include "core/spec/keys.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

constexpr std::size_t longest_flow = 100;

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

std::string scalar(const Node& node) { return node.quoted ? print_text(node.text) : node.text; }

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

// One bare name says as much as `{name: {}}`, where a choice stands alone.
bool is_bare_choice(const Key* key, const Node& node) {
  return key != nullptr && (key->type == Type::choice || key->type == Type::choices) && node.is(Kind::map) &&
         node.keys.size() == 1 && node.items[0].is(Kind::map) && node.items[0].items.empty() &&
         child(*key, node.keys[0].text)->type == Type::map;
}

void print(const Key& parent, const Node& map, std::size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  for (std::size_t i = 0; i < map.items.size(); ++i) {
    const Node& value = map.items[i];
    const Key* key = child(parent, map.keys[i].text);
    const std::string head = margin + name_of(map.keys[i]) + ":";
    if (indent == 0 && value.is(Kind::map) && !out.empty()) out += "\n";
    if (is_bare_choice(key, value)) {
      out += head + " " + name_of(value.keys[0]) + "\n";
    } else if (key != nullptr && key->type == Type::axes && value.items.size() == 1) {
      out += head + " " + flow(value.items[0]) + "\n";
    } else if (key != nullptr && key->type == Type::choices && child(*key, "name") == nullptr) {
      std::vector<std::string> items;
      for (const Node& item : value.items)
        items.push_back(is_bare_choice(key, item) ? name_of(item.keys[0]) : flow(item));
      out += head + " [" + join(items, ", ") + "]\n";
    } else if (key != nullptr && key->type == Type::choices) {
      out += head + "\n";
      for (const Node& item : value.items) out += margin + "  - " + flow(item) + "\n";
    } else if (value.is(Kind::map) && key != nullptr && !value.items.empty() &&
               (indent == 0 || (key->type == Type::choice && flow(value).size() > longest_flow))) {
      out += head + "\n";
      print(*key, value, indent + 2, out);
    } else {
      out += head + " " + flow(value) + "\n";
    }
  }
}

}  // namespace

std::string print_config(const Node& config) {
  std::string out;
  print(root_key(), config, 0, out);
  return out;
}

std::string print_value(const Node& value) { return flow(value); }

std::string print_text(const std::string& text) { return plain_word(text) ? text : quote(text); }

}  // namespace pmaptrain::spec
