// The example configs that `init` writes: the files of configs/, embedded when the program is built.
#pragma once

#include <span>
#include <string_view>

namespace pmaptrain::app {

struct Example {
  std::string_view name;  // "cnn"
  std::string_view text;
};
// In the order of their names.
std::span<const Example> examples();

}  // namespace pmaptrain::app
