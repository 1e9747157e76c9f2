// A tree of a YAML text in which every node has its place, and maps keep all keys.
//
// yaml-cpp's nodes do not show errors that a config must report (duplicate keys, the place of a blank value), and do
// not merge maps ('<<'), so this tree is built from the events of the library. Scalars stay text until they are checked
// against a key.
#pragma once

#include <any>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace pmaptrain::spec {

// The source of a text: a file, or an argument such as "--set". Paths in it are relative to `directory`.
struct Text {
  std::string file;
  std::string directory;
  std::vector<std::string> lines;
  bool option = false;
};

struct Node {
  enum class Kind {
    invalid,  // already reported
    blank,    // a key without a value
    null,     // null or ~, which mean the default
    scalar,
    sequence,
    map,
  };

  Kind kind = Kind::invalid;
  std::string text;       // of a scalar
  std::any parsed;        // of a checked scalar: what its text means, if that is more than a text
  bool quoted = false;    // a quoted scalar is always text
  bool fallback = false;  // a default, not written by the user
  std::shared_ptr<const Text> source;
  int line = 0;             // from 1; 0: the whole source
  int column = 0;           // in characters, from 1
  int length = 1;           // characters
  std::vector<Node> keys;   // of a map, one for each item
  std::vector<Node> items;  // of a sequence or map

  bool is(Kind other) const { return kind == other; }
  bool valid() const { return kind != Kind::invalid; }
  // The value of a key of a map, or null.
  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
  // Removes a key of a map, if it is there.
  void erase(std::string_view key);
  // Adds a key with its value.
  Node& add(Node key, Node value);
};

// Returns the parsed value of a checked scalar.
template <class T>
const T& parsed_as(const Node& node) {
  return std::any_cast<const T&>(node.parsed);
}

// A scalar with the place of `where`.
Node scalar_at(const Node& where, std::string text);
// An empty node of this kind with the place of `where`.
Node empty_at(const Node& where, Node::Kind kind);
// Sets the place of `node` and of all nodes in it to the place of `where`.
void move_to(Node& node, const Node& where);

Place place_of(const Node& node);
// "config" for a node of a file, "usage" for a node of an option.
std::string kind_of(const Node& node);

// Describes a value in messages: "'adam'", "the text \"7\"", "a list", "a map", "null".
std::string describe(const Node& node);

}  // namespace pmaptrain::spec
