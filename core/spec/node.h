// Our own tree of a YAML text: every node knows where it stands, and every key of a map is kept.
//
// yaml-cpp's nodes hide what a config must refuse (duplicate keys, merge keys, where a blank value stands), so the tree
// is built from the library's events. Scalars stay text until the key that they belong to says what they should be.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace pmaptrain::spec {

// What a text was read from: a file, or an argument such as "--set". Paths in it are relative to `directory`.
struct Text {
  std::string file;
  std::string directory;
  std::vector<std::string> lines;
  bool option = false;
};

struct Node {
  enum class Kind {
    invalid,  // reported already; nothing more is said about it
    blank,    // a key without a value
    null,     // null or ~: the default
    scalar,
    sequence,
    map,
  };

  Kind kind = Kind::invalid;
  std::string text;       // of a scalar
  bool quoted = false;    // a quoted scalar is a string, whatever it looks like
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

// A scalar that stands where `where` does.
Node scalar_at(const Node& where, std::string text);
// An empty sequence or map that stands where `where` does.
Node empty_at(const Node& where, Node::Kind kind);
// Gives `node`, and everything in it, the place of `where`.
void move_to(Node& node, const Node& where);

Place place_of(const Node& node);
// "config" for what a file says, "usage" for what an option says.
std::string kind_of(const Node& node);

// "'adam'", "the text \"7\"", "a list", "a map", "null": what stands there, for messages.
std::string describe(const Node& node);

}  // namespace pmaptrain::spec
