// How the characters of text files are stored, and texts of other encodings as UTF-8.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "core/data/file.h"
#include "core/declare/kind.h"

namespace pmaptrain::data {

// How the characters of a text file are stored.
enum class TextEncoding { utf8, latin1, windows1252, utf16 };
constexpr std::array<declare::Word<TextEncoding>, 4> words_of(declare::Tag<TextEncoding>) {
  return {{{"utf-8", TextEncoding::utf8},
           {"latin-1", TextEncoding::latin1},
           {"windows-1252", TextEncoding::windows1252},
           {"utf-16", TextEncoding::utf16}}};
}

struct Utf16 {
  bool is_big_endian = false;
  bool has_mark = false;  // a byte order mark, of 2 bytes
};
// Whether bytes are text in UTF-16. Without a byte order mark, ASCII characters tell: each has one zero byte, at
// offsets that are all even or all odd.
std::optional<Utf16> utf16_of(std::span<const std::byte> beginning);

// The text in UTF-8, in memory unless it is in UTF-8 already. `path` is for messages. Throws Error (data), with the
// line, for bytes that are no characters of the encoding, and for a text that is clearly of another one. Text in UTF-8
// is not checked.
Bytes to_utf8(const Bytes& text, TextEncoding encoding, const std::string& path);

// The encoding of a text, for `init`: UTF-8 where more characters beyond ASCII are well-formed in it than are not.
// Bytes alone do not tell windows-1252 from others of its kind, or from latin-1 where no byte is of 0x80 to 0x9f.
TextEncoding guess_encoding(std::span<const std::byte> text);

}  // namespace pmaptrain::data
