#include "core/report/html/picture.h"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "core/data/images/label_png.h"

namespace pmaptrain::report {
namespace {

struct Pixels {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> bytes;  // row by row
};

// A NaN is black.
std::vector<std::uint8_t> bytes_of_floats(std::span<const std::byte> example) {
  std::vector<float> values(example.size() / sizeof(float));
  std::memcpy(values.data(), example.data(), values.size() * sizeof(float));
  float low = 0, high = 0;
  bool any = false;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    low = any ? std::min(low, value) : value;
    high = any ? std::max(high, value) : value;
    any = true;
  }
  const float range = high > low ? high - low : 1;
  std::vector<std::uint8_t> bytes;
  bytes.reserve(values.size());
  for (const float value : values) {
    const float share = std::isfinite(value) ? (value - low) / range : 0;
    bytes.push_back(static_cast<std::uint8_t>(std::lround(255 * share)));
  }
  return bytes;
}

Pixels pixels_of(const data::Field& field, std::span<const std::byte> example) {
  const std::int64_t stored = field.shape[2];
  Pixels pixels{field.shape[0], field.shape[1], std::min<std::int64_t>(stored, 3), {}};
  std::vector<std::uint8_t> all(example.size());
  if (field.dtype == DType::f32) {
    all = bytes_of_floats(example);
  } else {
    std::memcpy(all.data(), example.data(), example.size());
  }
  if (stored == pixels.channels) {
    pixels.bytes = std::move(all);
    return pixels;
  }
  for (std::size_t at = 0; at < all.size(); at += static_cast<std::size_t>(stored)) {
    pixels.bytes.insert(pixels.bytes.end(), all.begin() + static_cast<std::ptrdiff_t>(at),
                        all.begin() + static_cast<std::ptrdiff_t>(at) + pixels.channels);
  }
  return pixels;
}

// Means over squares of `by` pixels.
Pixels smaller(const Pixels& of, std::int64_t by) {
  if (by == 1) return of;
  Pixels pixels{(of.height + by - 1) / by, (of.width + by - 1) / by, of.channels, {}};
  for (std::int64_t y = 0; y < pixels.height; ++y) {
    for (std::int64_t x = 0; x < pixels.width; ++x) {
      for (std::int64_t c = 0; c < of.channels; ++c) {
        int sum = 0, count = 0;
        for (std::int64_t v = y * by; v < std::min((y + 1) * by, of.height); ++v) {
          for (std::int64_t u = x * by; u < std::min((x + 1) * by, of.width); ++u, ++count) {
            sum += of.bytes[static_cast<std::size_t>((v * of.width + u) * of.channels + c)];
          }
        }
        pixels.bytes.push_back(static_cast<std::uint8_t>((sum + count / 2) / count));
      }
    }
  }
  return pixels;
}

std::vector<std::uint8_t> png_of(const Pixels& pixels) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(pixels.height);
  image.width = static_cast<png_uint_32>(pixels.width);
  image.format = pixels.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  std::vector<std::uint8_t> file(PNG_IMAGE_PNG_SIZE_MAX(image));
  png_alloc_size_t size = file.size();
  if (png_image_write_to_memory(&image, file.data(), &size, 0, pixels.bytes.data(), 0, nullptr) == 0) {
    fail_running(std::string("a picture cannot be encoded: ") + image.message);
  }
  file.resize(size);
  return file;
}

std::string base64(const std::vector<std::uint8_t>& bytes) {
  constexpr const char* letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) group = group << 8 | (j < count ? bytes[i + j] : 0U);
    for (std::size_t j = 0; j < 4; ++j) text += j <= count ? letters[group >> (18 - 6 * j) & 63U] : '=';
  }
  return text;
}

}  // namespace

std::string picture_uri(const data::Field& field, std::span<const std::byte> example, std::int64_t most_side) {
  const Pixels pixels = pixels_of(field, example);
  const std::int64_t side = std::max(pixels.height, pixels.width);
  return "data:image/png;base64," + base64(png_of(smaller(pixels, (side + most_side - 1) / most_side)));
}

std::string map_uri(std::span<const std::int32_t> labels, const Shape& map, std::size_t classes,
                    std::int64_t most_side) {
  const std::int64_t by = (std::max(map[0], map[1]) + most_side - 1) / most_side;
  Pixels pixels{(map[0] + by - 1) / by, (map[1] + by - 1) / by, 3, {}};
  for (std::int64_t y = 0; y < map[0]; y += by) {
    for (std::int64_t x = 0; x < map[1]; x += by) {
      const std::int32_t label = labels[static_cast<std::size_t>(y * map[1] + x)];
      const bool is_class = label >= 0 && static_cast<std::size_t>(label) < classes;
      const auto color = is_class ? data::color_of_label(static_cast<std::uint8_t>(label))
                                  : std::array<std::uint8_t, 3>{255, 255, 255};
      pixels.bytes.insert(pixels.bytes.end(), color.begin(), color.end());
    }
  }
  return "data:image/png;base64," + base64(png_of(pixels));
}

std::string color_of_class(std::size_t label) {
  const auto color = data::color_of_label(static_cast<std::uint8_t>(label));
  return fmt::format("#{:02x}{:02x}{:02x}", color[0], color[1], color[2]);
}

}  // namespace pmaptrain::report
