// A meaning as shells show it beside a word.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace pmaptrain::app {

// Its first clause: "set a config key, such as --set data.batch_size=64".
inline std::string short_meaning(std::string_view meaning) {
  std::size_t end = std::min({meaning.find("; "), meaning.find(". "), meaning.find(": ")});
  if (end == std::string_view::npos) end = meaning.size() - (meaning.ends_with('.') ? 1 : 0);
  return std::string(meaning.substr(0, end));
}

}  // namespace pmaptrain::app
