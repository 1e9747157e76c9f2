// One character of UTF-8 at a time, for text that may be damaged.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pmaptrain {

struct Utf8Character {
  char32_t code = 0;      // U+FFFD where the bytes are malformed
  std::size_t bytes = 1;  // how many to skip; 1 where they are malformed
  bool well_formed = true;
};

// The character at `position`, which is less than text.size().
Utf8Character utf8_at(std::string_view text, std::size_t position);

// Terminal columns of one character: 0 for controls and combining marks, 2 for East Asian wide ones and emoji, else 1.
int display_width(char32_t code);

// Control characters, which a terminal would act on, become '?'; a tab becomes a space. Line ends stay, and so do bytes
// that are no UTF-8, which names of files may have.
std::string printable(std::string_view text);

}  // namespace pmaptrain
