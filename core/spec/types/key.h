// One key of a config: what stands in the table of keys.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pmaptrain::spec {

enum class Type {
  map,       // keys of its own
  choice,    // exactly one of its alternatives, as a bare name or a key; other keys may be beside it
  choices,   // a list of choices
  maps,      // a list of maps, each with keys of its own
  text,      // any text
  texts,     // a list of texts, or one
  run_name,  // text that is a valid name of a folder
  layer_name,
  path,        // a file or folder
  paths,       // two files: inputs and targets
  files,       // a list of files, or one
  npz_split,   // a file, or two array names
  word,        // one of `words`
  words,       // the same, or a map of names to one of `item_words` each
  boolean,     // true, false
  integer,     // an integer in [low, high], or one of `words`
  seed,        // an integer from 0 to 2^64 - 1
  number,      // a number in its range
  duration,    // a count of steps, epochs or examples, or of seconds, minutes or hours
  interval,    // the same, or never
  amount,      // a count of batches or examples
  durations,   // a list of durations
  scales,      // a list of pairs of a duration and a number
  integers,    // a list of `length` integers
  numbers,     // a list of numbers, or one, or one of `words`
  range,       // a list of two numbers, the least first
  spread,      // the same, or one number of at least 0
  matrix,      // a list of examples, each a list of numbers
  memory,      // a number of MiB, GiB or TiB
  padding,     // SAME, VALID or two pairs of numbers
  axes,        // a map of one axis, or a list of such maps
  axis_names,  // a list of names of axes
  tensors,     // a map of parameters to nested lists of numbers
  varied,      // a map of keys to lists of their values
};

enum class Need {
  optional,     // missing: its fallback, if it has one
  required,     // missing: an error
  alternative,  // one of the alternatives of its parent
};

inline constexpr double largest_integer = 1e12;
inline constexpr double unbounded = 1e300;  // an end of a range without a bound

// A value of a key with which the program has other equations, so that no member of an ensemble may have it.
struct Structural {
  double value = 0.0;
  std::string_view why;  // "without momentum there is no trace"
};

struct Key {
  std::string path = {};  // dotted; the items of a list have no segment
  Type type = Type::map;
  Need need = Need::optional;
  std::string fallback = {};  // YAML; empty: none
  double low = 0.0, high = largest_integer;
  bool open_low = false, open_high = false;  // whether the end is excluded
  std::vector<std::string> words = {};       // of a map: what may stand in its place
  std::vector<std::string> item_words = {};
  std::size_t length = 0;           // of a list; 0: any
  bool steps = true, time = false;  // what a duration counts: steps, epochs and examples; seconds, minutes and hours
  bool or_number = false;           // of a choice, or of each of a list of them: also a number in [low, high]
  bool shorthand = false;           // `parent: value` is short for `parent: {key: value}` if the value is no map
  bool varies = false;              // whether the members of an ensemble may have different values
  std::optional<Structural> structural = {};  // of a key that varies
  std::string_view fixed = {};                // of a key that varies: why no step of a run can change it
  std::string_view meaning = {};
  std::string_view example = {};        // YAML
  std::string_view fallback_text = {};  // describes a default without a fixed text
  std::string_view item = {};           // of a list of choices: the noun for an item
  std::string_view like = {};           // the path of the key whose keys below also apply to this key

  std::string_view name() const { return std::string_view(path).substr(path.rfind('.') + 1); }
};

// Whether `run --resume --change` may change the key, in a config where no ensemble varies it.
inline bool may_change(const Key& key) { return key.varies && key.fixed.empty(); }

// "data.batch_size" of "data" and "batch_size"; either may be empty.
std::string path_below(std::string_view path, std::string_view name);

}  // namespace pmaptrain::spec
