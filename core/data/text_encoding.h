// How the characters of text files are stored, and texts of other encodings as UTF-8.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/data/file.h"
#include "core/spec/data.h"

namespace pmaptrain::data {

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
Bytes to_utf8(const Bytes& text, spec::TextEncoding encoding, const std::string& path);

// The encoding of a text, for `init`: UTF-8 where more characters beyond ASCII are well-formed in it than are not.
// Bytes alone do not tell windows-1252 from others of its kind, or from latin-1 where no byte is of 0x80 to 0x9f.
spec::TextEncoding guess_encoding(std::span<const std::byte> text);

}  // namespace pmaptrain::data
