// Values of keys that are more than a number, a word or a list of numbers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace pmaptrain::declare {

template <class T>
struct Tag {};

// Whether smaller or larger values of a measure are better.
enum class Mode { min, max };
constexpr std::array<std::pair<std::string_view, Mode>, 2> words_of(Tag<Mode>) {
  return {{{"min", Mode::min}, {"max", Mode::max}}};
}

// Zero padding of windows.
enum class PaddingKind { same, valid, causal, explicit_ };
struct Padding {
  PaddingKind kind = PaddingKind::same;
  std::vector<std::pair<std::int64_t, std::int64_t>> amounts;  // explicit_: before and after, along each dimension
};

enum class Unit { steps, epochs, examples, seconds, minutes, hours };
struct Duration {
  std::int64_t count = 0;
  Unit unit = Unit::steps;
  Place place;
};

// A factor from a boundary on.
struct Scale {
  Duration boundary;
  double scale = 1.0;
};

// Numbers from `low` to `high`.
struct Range {
  double low = 0.0, high = 0.0;
};
// A range; or, written as one number, all that is at most `distance` away from where nothing changes.
struct Spread {
  double distance = 0.0;
  std::optional<Range> range = std::nullopt;  // in place of the distance
};

struct ClassWeights {
  std::vector<double> each;  // one for each class; empty: all 1
  bool balanced = false;     // those that balance the training split, in place of these
};

// The name of a column.
struct ColumnName {
  std::string text;
  Place place = {};
};

// A position of a sequence.
struct Position {
  std::int64_t index = 0;  // counted from 0
  bool is_last = false;    // whatever the length is
};

// An entry of a map of names, or of a list, whose names are the indices: 0, 1, ...
template <class Value>
struct Named {
  std::string name;
  Value value;
};

// The files of the inputs and of the targets.
struct FilePair {
  std::string inputs, targets;  // absolute paths
};
// A file, or the names of the arrays of inputs and of targets in another one, and of the lengths of sequences, which
// may be empty.
struct FileOrArrays {
  std::string file;  // absolute path
  std::string inputs, targets, lengths = {};
};

struct AxisNames {
  std::vector<std::string> names;  // of mesh axes
};

// A pattern for names of parameters; each * matches any characters.
struct Pattern {
  std::string text;
  Place place = {};
};

// A rectangular nested list, flattened row-major.
struct Tensor {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
  Place place;
};

}  // namespace pmaptrain::declare
