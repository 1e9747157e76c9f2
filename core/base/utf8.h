// Decoding of single UTF-8 characters, also in malformed text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

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

// A name from a user's files (of a class, a column, a category) as a part of one line of a table or a message: line
// ends, tabs, control characters and bytes that are not UTF-8 are escaped as in C, and a name that is wider than `most`
// columns (at least 8) has "..." in its middle.
std::string shown_name(std::string_view name, int most = 40);

// The first `most` of them: "cat, dog and 3 more".
std::string shown_list(const std::vector<std::string>& names, std::size_t most = 12);

}  // namespace pmaptrain
