// Words of other frameworks, and their equivalents here: one table for configs and the command line.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pmaptrain {

struct HintRow {
  // Where the words are written, one or more places. In a config: "layer", "loss", "optimizer" and the like for one of
  // several alternatives; the name of a map, or "key" for any map, for a key in it; the name of a key for its value;
  // "duration" for the unit of one. Elsewhere: "option", "command", "collective", "op", "format" of export.
  std::string_view where;
  std::string_view words;  // separated by spaces; upper case and punctuation do not count
  std::string_view meant;  // the name that is right there, for "key" a path; empty: there is no such thing here
  // Follows "did you mean"; or the nearest thing that exists. {} is what was written, and {{}} is {}.
  std::string_view help;
};
std::span<const HintRow> hint_rows();

struct Hint {
  std::string help;
  std::string_view meant;  // empty: refused as not supported, not as misspelt
  std::string path = {};   // of the key that was meant, or that takes what was meant
  bool is_supported() const { return !meant.empty(); }
};

// For a word that is none of those expected at `where`. `value` is what was written with it.
std::optional<Hint> hint_for(std::string_view where, std::string_view word, std::string_view value = "");

// For a key that the map at `path` (dotted; empty: the config) does not have.
std::optional<Hint> hint_for_key(std::string_view path, std::string_view word, std::string_view value = "");

// A hint for a word whose place in a config is unknown.
std::optional<Hint> hint_in_config(std::string_view word);

}  // namespace pmaptrain
