// PNG files whose pixels are numbers of classes: grey, or indices into a palette.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pmaptrain::data {

struct LabelImage {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> labels;  // row by row
};

// The numbers in a PNG file, as they are: a grey of 1 bit is 0 or 1, a colour of the palette its index. `name` is the
// file's, for messages. Throws Error (data) for colours, 16 bits, an alpha channel, and a damaged file.
LabelImage decode_labels(std::span<const std::byte> file, const std::string& name);

// A PNG file of indices into a palette, in which class 0 is black and the others have the colours of color_of_label().
std::vector<std::byte> encode_labels(std::span<const std::uint8_t> labels, std::int64_t height, std::int64_t width);

// Red, green and blue that tell a class from the others.
std::array<std::uint8_t, 3> color_of_label(std::uint8_t label);

}  // namespace pmaptrain::data
