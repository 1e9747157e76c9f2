// How examples divide over the classes of their targets, and what a config says of that.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/input/open.h"

namespace pmaptrain::app {

struct ClassBalance {
  std::map<std::int32_t, std::int64_t> counts;  // examples by class; none of classes without an example
  std::int64_t examples = 0;
  std::int64_t least = 0;   // examples of `rarest`
  std::int32_t rarest = 0;  // the first of the classes with the fewest
  bool is_rare = false;     // it has so few examples that accuracy says little of it
};
// Of the training split; `divided`: and of the validation examples that are taken out of it.
ClassBalance balance_of(const data::Source& source, bool divided);

// The classes as the key `classes` lists them, where the order or the names of the data do not do: a rare class of two
// is the last one, and labels that are not 0, 1, 2, ... are names. Empty where they do. `names`: of the classes, in
// the order of the data; none where they are integers.
std::vector<std::string> listed_classes(const ClassBalance& balance, const std::vector<std::string>& names);

// Whether a text is a number.
bool is_number(const std::string& text);

}  // namespace pmaptrain::app
