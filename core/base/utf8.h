// Decoding of single UTF-8 characters, also in malformed text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pmaptrain {

struct Utf8Character {
  char32_t code = 0;      // U+FFFD if the bytes are malformed
  std::size_t bytes = 1;  // bytes of the character; 1 if they are malformed
  bool well_formed = true;
};

// The character at `position`. Precondition: position < text.size().
Utf8Character utf8_at(std::string_view text, std::size_t position);

// Terminal columns of one character: 0 for controls and combining marks, 2 for East Asian wide ones and emoji, else 1.
int display_width(char32_t code);

// Replaces control characters, which a terminal would interpret, by '?' and tabs by spaces. Keeps line ends and bytes
// that are not UTF-8, which may occur in file names.
std::string printable(std::string_view text);

}  // namespace pmaptrain
