// One key of a config: an entry in the table of keys.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pmaptrain::spec {
struct Type;
}  // namespace pmaptrain::spec

namespace pmaptrain::declare {

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

// What a key takes. core/spec sets it: by the member that the key is stored in, else to a map.
class TypeOf {
 public:
  constexpr TypeOf() = default;
  constexpr TypeOf(const spec::Type& type) : type_(&type) {}
  const spec::Type* operator->() const { return type_; }
  bool is_set() const { return type_ != nullptr; }
  friend bool operator==(TypeOf a, TypeOf b) { return a.type_ == b.type_; }

 private:
  const spec::Type* type_ = nullptr;
};

struct Key {
  std::string path = {};  // dotted; the items of a list have no segment
  TypeOf type = {};
  bool is_path = false;  // of a text: that of a file or folder
  Need need = Need::optional;
  std::string fallback = {};  // YAML; empty: none
  double low = 0.0, high = largest_integer;
  bool open_low = false, open_high = false;  // whether the end is excluded
  std::vector<std::string> words = {};       // of a map: what may stand in its place
  std::vector<std::string> item_words = {};
  std::size_t length = 0;            // of a list; 0: any
  std::size_t least_length = 0;      // of a list that may be shorter; 0: `length`
  std::string_view as_long_as = {};  // of such a list: the key beside it whose list has as many items
  bool steps = true, time = false;   // units of a duration: steps, epochs and examples; seconds, minutes and hours
  bool or_zero = false;              // of a duration, or of each of a list of them: it may be 0
  bool or_number = false;            // of a choice, or of each of a list of them: also a number in [low, high]
  bool shorthand = false;            // `parent: value` is short for `parent: {key: value}` if the value is no map
  bool identifier = false;           // of a text: letters, digits and '_', no digit first
  bool varies = false;               // whether the members of an ensemble may have different values
  std::optional<Structural> structural = {};  // of a key that varies
  std::string_view fixed = {};                // of a key that varies: why no step of a run can change it
  std::string_view meaning = {};
  std::string_view example = {};        // YAML
  std::string_view fallback_text = {};  // describes a default without a fixed text
  std::string_view item = {};           // of a list of choices: the noun for an item
  std::string_view like = {};           // the path of the key whose keys below also apply to this key

  std::string_view name() const { return std::string_view(path).substr(path.rfind('.') + 1); }
};

}  // namespace pmaptrain::declare
