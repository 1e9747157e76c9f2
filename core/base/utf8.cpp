#include "core/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace pmaptrain {
namespace {

struct Range {
  char32_t first, last;
};

// Common ranges only, in order: a caret may be off by a column under a rare script, never out of its line.
constexpr std::array zero_width{
    Range{0x0000, 0x001F},   Range{0x007F, 0x009F}, Range{0x0300, 0x036F}, Range{0x0483, 0x0489}, Range{0x0591, 0x05BD},
    Range{0x0610, 0x061A},   Range{0x064B, 0x065F}, Range{0x093C, 0x093C}, Range{0x0E31, 0x0E31}, Range{0x0E34, 0x0E3A},
    Range{0x0E47, 0x0E4E},   Range{0x1AB0, 0x1AFF}, Range{0x1DC0, 0x1DFF}, Range{0x200B, 0x200F}, Range{0x202A, 0x202E},
    Range{0x2060, 0x2064},   Range{0x20D0, 0x20FF}, Range{0xFE00, 0xFE0F}, Range{0xFE20, 0xFE2F}, Range{0xFEFF, 0xFEFF},
    Range{0xE0100, 0xE01EF},
};
constexpr std::array double_width{
    Range{0x1100, 0x115F},   Range{0x231A, 0x231B},   Range{0x23E9, 0x23EC},   Range{0x25FD, 0x25FE},
    Range{0x2614, 0x2615},   Range{0x26A1, 0x26A1},   Range{0x2705, 0x2705},   Range{0x274C, 0x274C},
    Range{0x2E80, 0x303E},   Range{0x3041, 0x33FF},   Range{0x3400, 0x4DBF},   Range{0x4E00, 0x9FFF},
    Range{0xA000, 0xA4CF},   Range{0xA960, 0xA97C},   Range{0xAC00, 0xD7A3},   Range{0xF900, 0xFAFF},
    Range{0xFE30, 0xFE6F},   Range{0xFF00, 0xFF60},   Range{0xFFE0, 0xFFE6},   Range{0x1F300, 0x1F64F},
    Range{0x1F680, 0x1F6FF}, Range{0x1F900, 0x1F9FF}, Range{0x1FA70, 0x1FAFF}, Range{0x20000, 0x3FFFD},
};

bool contains(std::span<const Range> ranges, char32_t code) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), code,
                                      [](char32_t value, const Range& range) { return value < range.first; });
  return after != ranges.begin() && code <= std::prev(after)->last;
}

}  // namespace

Utf8Character utf8_at(std::string_view text, std::size_t position) {
  constexpr Utf8Character malformed{0xFFFD, 1, false};
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[position + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || position + bytes > text.size()) return malformed;
  char32_t code = lead & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0u) != 0x80u) return malformed;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  constexpr std::array<char32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < smallest[bytes] || surrogate || code > 0x10FFFF) return malformed;
  return {code, bytes, true};
}

int display_width(char32_t code) {
  if (contains(zero_width, code)) return 0;
  return contains(double_width, code) ? 2 : 1;
}

std::string printable(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Character c = utf8_at(text, i);
    if (c.code == '\t') {
      result += ' ';
    } else if ((c.code < 0x20 && c.code != '\n') || (c.code >= 0x7F && c.code < 0xA0)) {
      result += '?';
    } else {
      result += text.substr(i, c.bytes);
    }
    i += c.bytes;
  }
  return result;
}

std::string shown_name(std::string_view name, int most) {
  struct Piece {
    std::string text;
    int width = 0;
  };
  std::vector<Piece> pieces;  // of which none is cut
  int width = 0;
  for (std::size_t i = 0; i < name.size();) {
    const Utf8Character c = utf8_at(name, i);
    const bool is_control = c.code < 0x20 || (c.code >= 0x7F && c.code < 0xA0);
    Piece piece{std::string(name.substr(i, c.bytes)), display_width(c.code)};
    if (c.code == '\n' || c.code == '\r' || c.code == '\t') {
      piece = {c.code == '\n' ? "\\n" : c.code == '\r' ? "\\r" : "\\t", 2};
    } else if (is_control || !c.well_formed) {
      const unsigned code = c.well_formed ? static_cast<unsigned>(c.code) : static_cast<unsigned char>(name[i]);
      piece = {fmt::format("\\x{:02x}", code), 4};
    }
    width += piece.width;
    pieces.push_back(std::move(piece));
    i += c.bytes;
  }
  std::string shown;
  if (width <= most) {
    for (const Piece& piece : pieces) shown += piece.text;
    return shown;
  }
  constexpr std::string_view gap = "...";
  const int end = (most - static_cast<int>(gap.size())) / 3, start = most - static_cast<int>(gap.size()) - end;
  int used = 0;
  std::size_t first = 0, last = pieces.size();
  for (; used + pieces[first].width <= start; ++first) used += pieces[first].width;
  for (used = 0; used + pieces[last - 1].width <= end; --last) used += pieces[last - 1].width;
  for (std::size_t i = 0; i < first; ++i) shown += pieces[i].text;
  shown += gap;
  for (std::size_t i = last; i < pieces.size(); ++i) shown += pieces[i].text;
  return shown;
}

std::string shown_list(const std::vector<std::string>& names, std::size_t most) {
  std::string shown;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i) shown += (i > 0 ? ", " : "") + shown_name(names[i]);
  return names.size() <= most ? shown : fmt::format("{} and {} more", shown, names.size() - most);
}

}  // namespace pmaptrain
