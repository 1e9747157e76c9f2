#include "core/spec/yaml/node.h"

#include <algorithm>

namespace pmaptrain::spec {

const Node* Node::find(std::string_view key) const {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].text == key) return &items[i];
  }
  return nullptr;
}

Node* Node::find(std::string_view key) { return const_cast<Node*>(static_cast<const Node*>(this)->find(key)); }

void Node::erase(std::string_view key) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].text != key) continue;
    keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(i));
    items.erase(items.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

Node& Node::add(Node key, Node value) {
  keys.push_back(std::move(key));
  items.push_back(std::move(value));
  return items.back();
}

Node scalar_at(const Node& where, std::string text) {
  Node node = empty_at(where, Node::Kind::scalar);
  node.text = std::move(text);
  return node;
}

Node empty_at(const Node& where, Node::Kind kind) {
  Node node;
  node.kind = kind;
  node.fallback = where.fallback;
  node.source = where.source;
  node.line = where.line;
  node.column = where.column;
  node.length = where.length;
  return node;
}

void move_to(Node& node, const Node& where) {
  node.source = where.source;
  node.line = where.line;
  node.column = where.column;
  node.length = where.length;
  for (Node& key : node.keys) move_to(key, where);
  for (Node& item : node.items) move_to(item, where);
}

Place place_of(const Node& node) {
  Place place;
  if (!node.source) return place;
  place.file = node.source->file;
  const auto& lines = node.source->lines;
  if (node.line < 1 || static_cast<std::size_t>(node.line) > lines.size()) return place;
  place.line = node.line;
  place.column = node.column;
  place.length = std::max(node.length, 1);  // a value of several lines is underlined to the end of its first line
  const std::string& line = lines[static_cast<std::size_t>(node.line) - 1];
  place.excerpt = SourceLine(std::shared_ptr<const std::string>(node.source, &line));
  return place;
}

std::string kind_of(const Node& node) { return node.source && node.source->option ? "usage" : "config"; }

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::scalar: return node.quoted ? "the text \"" + node.text + "\"" : "'" + node.text + "'";
    case Node::Kind::sequence: return "a list";
    case Node::Kind::map: return "a map";
    case Node::Kind::null: return "null";
    case Node::Kind::blank:
    case Node::Kind::invalid: break;
  }
  return "nothing";
}

}  // namespace pmaptrain::spec
