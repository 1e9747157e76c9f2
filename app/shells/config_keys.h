// The config keys that shells complete after --set.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/options/syntax.h"

namespace pmaptrain::app {

// In a path an item of a list has the segment "#", for any index: "model.layers.#.dropout.".
struct ConfigKeys {
  // Of each path that keys follow, with its dot at the end ("" is the config), the segments that may follow: "rate="
  // takes a value, "adam." is followed by further segments.
  std::vector<std::pair<std::string, std::vector<std::string>>> below;
  // Keys with the values that they take, where shells can complete these. Keys of the same values are together.
  std::vector<std::pair<std::vector<std::string>, Values>> values;
  // A path that begins with the first is completed as one that begins with the second: of keys below which the same
  // keys follow as elsewhere, such as nested lists of layers.
  std::vector<std::pair<std::string, std::string>> same;
  // All paths, as `pmaptrain help` takes them.
  std::vector<std::string> paths;
};

ConfigKeys config_keys();

}  // namespace pmaptrain::app
