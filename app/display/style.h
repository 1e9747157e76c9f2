// How text is painted on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace pmaptrain::display {

inline constexpr std::string_view bold = "\x1b[1m", dim = "\x1b[2m", cyan = "\x1b[36m", yellow = "\x1b[1;33m",
                                  red = "\x1b[1;31m", reset = "\x1b[0m";

// `text` in a style, where there is colour.
inline std::string painted(std::string_view style, const std::string& text, bool color) {
  return color && !text.empty() ? std::string(style) + text + std::string(reset) : text;
}

}  // namespace pmaptrain::display
