#include "core/data/text_encoding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "core/base/error.h"
#include "core/base/utf8.h"

namespace pmaptrain::data {
namespace {

using namespace std::string_view_literals;

constexpr char32_t none = 0xffffffff;

// The characters 0x80 to 0x9f of windows-1252.
constexpr std::array<char32_t, 32> of_windows = {0x20ac, none,   0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021,
                                                 0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, none,   0x017d, none,
                                                 none,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                                 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, none,   0x017e, 0x0178};

std::size_t utf8_length(char32_t code) { return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4; }

std::byte* put_utf8(char32_t code, std::byte* to) {
  const std::size_t length = utf8_length(code);
  constexpr std::array<unsigned, 5> lead = {0, 0, 0xc0, 0xe0, 0xf0};
  for (std::size_t i = length; i-- > 1; code >>= 6) to[i] = static_cast<std::byte>(0x80U | (code & 0x3fU));
  to[0] = static_cast<std::byte>(lead[length] | code);
  return to + length;
}

class Decoder {
 public:
  Decoder(std::span<const std::byte> text, TextEncoding encoding, const std::string& path)
      : text_(text), encoding_(encoding), path_(path) {}

  // Calls `take` for each character.
  template <class Take>
  void each(Take&& take) const {
    if (encoding_ == TextEncoding::utf16) {
      each_of_utf16(take);
      return;
    }
    for (std::size_t i = 0; i < text_.size(); ++i) {
      const auto byte = std::to_integer<char32_t>(text_[i]);
      const bool is_other = encoding_ == TextEncoding::windows1252 && byte >= 0x80 && byte < 0xa0;
      const char32_t code = is_other ? of_windows[byte - 0x80] : byte;
      if (code == none) {
        fail(i, fmt::format("the byte {:#04x} is no character of windows-1252", static_cast<unsigned>(byte)),
             "encoding: latin-1 takes every byte as a character");
      }
      take(code);
    }
  }

 private:
  template <class Take>
  void each_of_utf16(Take& take) const {
    const std::optional<Utf16> kind = utf16_of(text_);
    if (!kind) {
      fail_data(fmt::format("'{}' is no text in UTF-16: it has no byte order mark, and ASCII characters have no zero "
                            "byte",
                            path_),
                "encoding: utf-8 is the default");
    }
    const auto unit = [&](std::size_t at) {
      return static_cast<char32_t>(kind->is_big_endian ? read_big(text_, at, 2) : read_little(text_, at, 2));
    };
    if (text_.size() % 2 != 0) fail(text_.size() - 1, "half a character of UTF-16 at the end of the file", truncated);
    for (std::size_t i = kind->has_mark ? 2 : 0; i < text_.size(); i += 2) {
      char32_t code = unit(i);
      if (code >= 0xd800 && code < 0xe000) {
        const char32_t low = i + 2 < text_.size() ? unit(i + 2) : 0;
        if (code >= 0xdc00 || low < 0xdc00 || low >= 0xe000) fail(i, "half a pair of surrogates in UTF-16", truncated);
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        i += 2;
      }
      take(code);
    }
  }

  [[noreturn]] void fail(std::size_t at, const std::string& what, const char* help) const {
    const std::string_view before = as_chars(text_).substr(0, at);
    fail_data(fmt::format("'{}', line {}: {}", path_, 1 + std::count(before.begin(), before.end(), '\n'), what), help);
  }

  static constexpr const char* truncated = "the file is damaged: copy it again";
  std::span<const std::byte> text_;
  TextEncoding encoding_;
  const std::string& path_;
};

bool is_control(unsigned unit) { return unit < 0x20 && unit != '\t' && unit != '\n' && unit != '\r'; }

// Whether it may be UTF-8 with some zero bytes between texts. Its last character may be cut.
bool may_be_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Character character = utf8_at(text, i);
    const bool is_cut = !character.well_formed && text.size() - i < 4;
    if (!is_cut && !character.well_formed) return false;
    if (character.code != 0 && is_control(character.code)) return false;
    i += character.bytes;
  }
  return true;
}

}  // namespace

std::optional<Utf16> utf16_of(std::span<const std::byte> beginning) {
  const std::string_view text = as_chars(beginning);
  if (text.starts_with("\xff\xfe\0\0"sv)) return std::nullopt;  // UTF-32
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) return Utf16{text[0] == '\xfe', true};
  constexpr std::size_t most = std::size_t{1} << 16;
  const std::size_t units = std::min(text.size(), most) / 2;
  std::array<std::size_t, 2> zeros = {};  // at even and at odd offsets
  for (std::size_t i = 0; i < 2 * units; ++i) zeros[i % 2] += text[i] == '\0' ? 1U : 0U;
  const bool is_big = zeros[0] > 0;
  if ((zeros[0] > 0) == (zeros[1] > 0)) return std::nullopt;
  // Few characters of Chinese text are ASCII; its bytes are no UTF-8.
  const std::size_t ascii = zeros[is_big ? 0 : 1];
  if (ascii * 100 < units || (ascii * 5 < units * 2 && may_be_utf8(text.substr(0, 2 * units)))) return std::nullopt;
  for (std::size_t i = 0; i < units; ++i) {
    const std::span<const std::byte> unit = beginning.subspan(2 * i, 2);
    if (is_control(static_cast<unsigned>(is_big ? read_big(unit, 0, 2) : read_little(unit, 0, 2)))) return std::nullopt;
  }
  return Utf16{is_big, false};
}

Bytes to_utf8(const Bytes& text, TextEncoding encoding, const std::string& path) {
  if (encoding == TextEncoding::utf8) return text;
  if (encoding != TextEncoding::utf16 && as_chars(text.view()).starts_with("\xef\xbb\xbf")) {
    fail_data(fmt::format("'{}' begins with the byte order mark of UTF-8, and encoding is another one", path),
              "remove encoding: utf-8 is the default");
  }
  const Decoder decoder(text.view(), encoding, path);
  std::uint64_t bytes = 0;
  decoder.each([&](char32_t code) { bytes += utf8_length(code); });
  const Memory memory = allocate(bytes, fmt::format("'{}' in UTF-8", path));
  std::byte* to = memory.view.data();
  decoder.each([&](char32_t code) {
    // A file that is written meanwhile may have other characters by now.
    if (utf8_length(code) > bytes) fail_data(fmt::format("'{}' was changed while it was read", path), "start again");
    bytes -= utf8_length(code);
    to = put_utf8(code, to);
  });
  text.check_intact();
  return {memory.owner, memory.view};
}

TextEncoding guess_encoding(std::span<const std::byte> text) {
  if (utf16_of(text)) return TextEncoding::utf16;
  const std::string_view chars = as_chars(text);
  std::size_t well_formed = 0, malformed = 0;
  bool is_of_windows = false;
  for (std::size_t i = 0; i < chars.size();) {
    const auto byte = static_cast<unsigned char>(chars[i]);
    const Utf8Character character = utf8_at(chars, i);
    i += character.bytes;
    if (byte < 0x80) continue;
    ++(character.well_formed ? well_formed : malformed);
    is_of_windows = is_of_windows || (!character.well_formed && byte < 0xa0);
  }
  if (malformed <= well_formed) return TextEncoding::utf8;
  return is_of_windows ? TextEncoding::windows1252 : TextEncoding::latin1;
}

}  // namespace pmaptrain::data
