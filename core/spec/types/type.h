// The types of values. Each type has one file in this folder with everything about it; types of keys that have keys
// below them are in core/spec/keys.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/declare/key.h"
#include "core/spec/yaml/node.h"
#include "core/spec/yaml/report.h"

namespace pmaptrain::spec {

using declare::Key;
using declare::largest_integer;
using declare::Need;
using declare::Structural;
using declare::TypeOf;
using declare::unbounded;

// The named parts of a schema, as JSON.
using Definitions = std::vector<std::pair<std::string, std::string>>;

struct Type {
  // A description of the accepted values, for errors and help: "an integer of at least 1", "a path".
  std::string (*takes)(const Key& key);
  // The JSON Schema of a value, as JSON. Parts that have a name are added to `named`.
  std::string (*schema)(const Key& key, Definitions& named) = nullptr;
  // Checks and parses a value. Returns it in its canonical form (integers as digits, numbers by exact(), absolute
  // paths); each scalar also stores its parsed value. After reporting an error, returns an invalid node.
  Node (*check)(const Key& key, const Node& value, const Reporter& reporter) = nullptr;

  // With keys below them. keys/check.cpp and keys/schema.cpp go through these, so they have no `schema` and `check`.
  static const Type map;      // keys of its own
  static const Type choice;   // exactly one of its alternatives, as a bare name or a key; other keys may be beside it
  static const Type choices;  // a list of choices
  static const Type maps;     // a list of maps, each with keys of its own
  static const Type entries;  // a map of names, or a list, of values that all have the one key below it

  static const Type varied;  // a map of keys to lists of their values

  // Types that code refers to by name. Any other type is that of a member: Takes<Member>::type.
  static const Type text;        // any text
  static const Type run_name;    // text that is a valid name of a folder
  static const Type layer_name;  // text that is an identifier
  static const Type path;        // a file or folder
  static const Type word;        // one of Key::words
  static const Type integer;     // an integer in its range, or one of Key::words
  static const Type seed;        // an integer from 0 to 2^64 - 1
  static const Type number;      // a number in its range
  static const Type duration;    // a count of steps, epochs or examples, or of seconds, minutes or hours
  static const Type interval;    // the same, or never
  static const Type scales;      // a list of pairs of a duration and a number
  static const Type axes;        // a map of one axis, or a list of such maps
  static const Type axis_names;  // a list of names of axes
  static const Type tensors;     // a map of parameters to nested lists of numbers
};

}  // namespace pmaptrain::spec
