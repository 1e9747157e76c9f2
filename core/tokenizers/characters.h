// Characters of texts: well-formed UTF-8, normal forms, bytes as characters.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pmaptrain::tokenizers {

// U+FFFD
inline constexpr std::string_view replacement = "\xef\xbf\xbd";

void append_utf8(char32_t code, std::string& to);

// The text, in which U+FFFD stands for each part of it that is no UTF-8: the longest beginning of a character, else one
// byte, as Python's errors="replace" has it. It is in `storage` if it differs.
std::string_view well_formed(std::string_view text, std::string& storage);

// The text with `content` in place of each `pattern`, which is not empty.
std::string replaced(std::string_view text, std::string_view pattern, std::string_view content);

// The normal form C. Precondition of both: well-formed.
std::string nfc(std::string_view text);
// Each character in lower case, whatever stands beside it.
std::string lower_case(std::string_view text);

// White space as \s of the expressions has it, and characters of words, \w.
bool is_space(char32_t code);
bool is_of_words(char32_t code);

// The characters that stand for bytes in files of byte-level tokenizers: printable ones for themselves, others moved to
// U+0100 and after it.
std::string byte_level_text(std::string_view bytes);
// Its inverse; none for a text with other characters.
std::optional<std::string> bytes_of(std::string_view byte_level_text);

}  // namespace pmaptrain::tokenizers
