#include "core/data/images/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/data/file.h"
#include "core/data/images/formats.h"

namespace pmaptrain::data {
namespace {

using namespace std::string_view_literals;

bool begins(std::span<const std::byte> file, std::string_view magic, std::size_t at = 0) {
  return file.size() >= at + magic.size() && std::memcmp(file.data() + at, magic.data(), magic.size()) == 0;
}

[[noreturn]] void fail_format(std::span<const std::byte> file, const std::string& name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> others = {{{"GIF8"sv, "GIF"},
                                                                                    {"BM"sv, "BMP"},
                                                                                    {"II*\0"sv, "TIFF"},
                                                                                    {"MM\0*"sv, "TIFF"},
                                                                                    {"\xff\x4f\xff\x51"sv, "JPEG 2000"},
                                                                                    {"\0\0\0\x0cjP"sv, "JPEG 2000"}}};
  std::string_view format;
  for (const auto& [magic, other] : others) {
    if (begins(file, magic)) format = other;
  }
  if (begins(file, "RIFF") && begins(file, "WEBP", 8)) format = "WebP";
  if (begins(file, "ftypavif", 4)) format = "AVIF";
  if (begins(file, "ftypheic", 4)) format = "HEIC";
  if (!format.empty()) {
    fail_data(fmt::format("'{}' is a {} image; PNG and JPEG are supported", name, format),
              "convert it, for example with ImageMagick: magick FILE FILE.png");
  }
  std::string found;
  for (const std::byte byte : file.first(std::min<std::size_t>(4, file.size()))) {
    found += fmt::format(" {:02x}", std::to_integer<unsigned>(byte));
  }
  fail_data(fmt::format("'{}' is neither a PNG nor a JPEG image: it begins with{}", name, found),
            "move it out of the folder; only names that begin with a dot are passed over");
}

}  // namespace

void check_image_limits(std::int64_t height, std::int64_t width, const std::string& name) {
  if (height < 1 || width < 1)
    fail_data(fmt::format("'{}' is damaged: its image is {}x{} pixels", name, height, width));
  if (height > max_image_side || width > max_image_side || height > max_image_pixels / width) {
    fail_data(fmt::format("'{}' has {}x{} pixels (height x width); at most {} on a side and {} in total are read", name,
                          height, width, max_image_side, max_image_pixels),
              "make it smaller, or check that it is not damaged");
  }
}

namespace {

bool is_png(std::span<const std::byte> file) { return begins(file, "\x89PNG\r\n\x1a\n"); }
bool is_jpeg(std::span<const std::byte> file) { return begins(file, "\xff\xd8\xff"); }

}  // namespace

bool is_image(std::span<const std::byte> file) { return is_png(file) || is_jpeg(file); }

ImageHead read_image_head(std::span<const std::byte> file, const std::string& name) {
  if (is_png(file)) return read_png_head(file, name);
  if (is_jpeg(file)) return read_jpeg_head(file, name);
  fail_format(file, name);
}

// A byte of a PNG file may encode eight pixels, compressed at most 1032 times. There is no such bound for JPEG: in its
// progressive form, a few bits may encode thousands of blocks.
void check_image_bytes(const ImageHead& head, std::size_t file_bytes, const std::string& name) {
  const auto pixels = static_cast<std::uint64_t>(head.height * head.width);
  if (head.format != ImageFormat::png || pixels / 8 <= Inflater::limit(file_bytes)) return;
  fail_data(fmt::format("'{}' is truncated: its {} bytes cannot hold {}x{} pixels", name, file_bytes, head.height,
                        head.width),
            "copy or download it again");
}

void decode_image(std::span<const std::byte> file, const std::string& name, const ImageHead& head,
                  std::int64_t channels, std::span<std::byte> out) {
  assert(channels == 3 || (channels == 1 && head.grey));
  assert(static_cast<std::int64_t>(out.size()) == head.height * head.width * channels);
  const auto decode = [&](std::span<std::byte> to) {
    (head.format == ImageFormat::png ? decode_png : decode_jpeg)(file, name, channels, to);
  };
  if (head.orientation == 1) return decode(out);
  const Memory stored = allocate(out.size(), fmt::format("'{}'", name));
  decode(stored.view);
  apply_orientation(head, channels, stored.view, out);
}

// Exif 2.32, 4.6: the header of a TIFF file, and the entry 0x0112 of its first directory.
std::uint8_t exif_orientation(std::span<const std::byte> tiff) {
  const bool little = begins(tiff, "II*\0"sv);
  if (!little && !begins(tiff, "MM\0*"sv)) return 1;
  const auto number = [&](std::uint64_t at, std::size_t size) -> std::uint64_t {
    if (at > tiff.size() || tiff.size() - at < size) return 0;
    return little ? read_little(tiff, static_cast<std::size_t>(at), size)
                  : read_big(tiff, static_cast<std::size_t>(at), size);
  };
  constexpr std::uint64_t orientation = 0x0112, short_integer = 3, entry_bytes = 12;
  const std::uint64_t directory = number(4, 4), entries = number(directory, 2);
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::uint64_t entry = directory + 2 + entry_bytes * i;
    if (number(entry, 2) != orientation || number(entry + 2, 2) != short_integer) continue;
    const std::uint64_t value = number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<std::uint8_t>(value) : std::uint8_t{1};
  }
  return 1;
}

void apply_orientation(const ImageHead& head, std::int64_t channels, std::span<const std::byte> stored,
                       std::span<std::byte> seen) {
  const std::int64_t height = head.seen_height(), width = head.seen_width();
  const std::uint8_t o = head.orientation;
  const bool from_bottom = o == 3 || o == 4 || o == 6 || o == 7;  // of the stored image
  const bool from_right = o == 2 || o == 3 || o == 7 || o == 8;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      std::int64_t row = head.turned() ? x : y, column = head.turned() ? y : x;
      if (from_bottom) row = head.height - 1 - row;
      if (from_right) column = head.width - 1 - column;
      const std::int64_t from = (row * head.width + column) * channels, to = (y * width + x) * channels;
      std::memcpy(seen.data() + to, stored.data() + from, static_cast<std::size_t>(channels));
    }
  }
}

}  // namespace pmaptrain::data
