#include "core/tokenizers/characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>

#include "core/base/text.h"
#include "core/base/utf8.h"

namespace pmaptrain::tokenizers {
namespace {

unsigned byte_at(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]); }

// How many bytes at `at`, which begin no well-formed character, are replaced together.
std::size_t malformed_bytes(std::string_view text, std::size_t at) {
  const unsigned lead = byte_at(text, at);
  const std::size_t length = lead >= 0xf0 && lead <= 0xf4 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return 1;
  // The range of the second byte excludes overlong forms, surrogates and what is past U+10FFFF.
  const unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  std::size_t count = 1;
  for (; count < length && at + count < text.size(); ++count) {
    const unsigned next = byte_at(text, at + count);
    if (count == 1 ? next < low || next > high : next < 0x80 || next > 0xbf) break;
  }
  return count;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_printable(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
}

// The character of each byte.
constexpr std::array<char32_t, 256> make_byte_characters() {
  std::array<char32_t, 256> characters = {};
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    characters[byte] = prints ? byte : next++;
  }
  return characters;
}
constexpr std::array<char32_t, 256> byte_characters = make_byte_characters();

}  // namespace

void append_utf8(char32_t code, std::string& to) {
  std::array<utf8proc_uint8_t, 4> bytes = {};
  const utf8proc_ssize_t count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes.data());
  to.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(count));
}

std::string_view well_formed(std::string_view text, std::string& storage) {
  if (is_utf8(text)) return text;
  storage.clear();
  storage.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = utf8_at(text, at);
    const std::size_t bytes = character.well_formed ? character.bytes : malformed_bytes(text, at);
    storage += character.well_formed ? text.substr(at, bytes) : replacement;
    at += bytes;
  }
  return storage;
}

std::string replaced(std::string_view text, std::string_view pattern, std::string_view content) {
  std::string result;
  result.reserve(text.size());
  std::size_t at = 0;
  for (std::size_t found = text.find(pattern); found != std::string_view::npos; found = text.find(pattern, at)) {
    result += text.substr(at, found - at);
    result += content;
    at = found + pattern.size();
  }
  return result += text.substr(at);
}

std::string nfc(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  utf8proc_uint8_t* composed = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &composed, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  if (size < 0) throw std::bad_alloc();  // the text is well-formed
  std::string result(reinterpret_cast<const char*>(composed), static_cast<std::size_t>(size));
  std::free(composed);
  return result;
}

std::string lower_case(std::string_view text) {
  constexpr char32_t dotted_i = 0x130;  // the only character whose lower case has two
  std::string lower;
  lower.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = utf8_at(text, at);
    at += character.bytes;
    if (character.code == dotted_i) {
      lower += "i\xcc\x87";
    } else {
      append_utf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character.code))), lower);
    }
  }
  return lower;
}

bool is_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0d) || code == 0x20 || code == 0x85 || code == 0xa0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f ||
         code == 0x3000;
}

bool is_of_words(char32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    default: break;
  }
  // The joiners, and letters that are symbols.
  return code == 0x200c || code == 0x200d || (code >= 0x24b6 && code <= 0x24e9) ||
         (code >= 0x1f130 && code <= 0x1f149) || (code >= 0x1f150 && code <= 0x1f169) ||
         (code >= 0x1f170 && code <= 0x1f189);
}

std::string byte_level_text(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (std::size_t at = 0; at < bytes.size(); ++at) append_utf8(byte_characters[byte_at(bytes, at)], text);
  return text;
}

std::optional<std::string> bytes_of(std::string_view byte_level_text) {
  std::string bytes;
  bytes.reserve(byte_level_text.size());
  for (std::size_t at = 0; at < byte_level_text.size();) {
    const Utf8Character character = utf8_at(byte_level_text, at);
    at += character.bytes;
    if (character.code < 0x100 && is_printable(static_cast<unsigned>(character.code))) {
      bytes += static_cast<char>(character.code);
      continue;
    }
    const auto found = std::find(byte_characters.begin(), byte_characters.end(), character.code);
    if (found == byte_characters.end()) return std::nullopt;
    bytes += static_cast<char>(found - byte_characters.begin());
  }
  return bytes;
}

}  // namespace pmaptrain::tokenizers
