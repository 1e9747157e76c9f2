// Resizing of images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pmaptrain::data {

// Bilinear with antialiasing: when an image becomes smaller, the triangle filter is widened by the ratio, so that every
// pixel contributes. The filter, its weights of 22 bits and the rounding to 8 bits after each direction are those of
// Pillow's Image.resize with BILINEAR (and, within 1 of 255, torchvision's with antialias=True).
//
// `from` is [height, width, channels], `to` is [new_height, new_width, channels]; all sizes are at least 1. Throws
// Error (resource) if there is too little memory for the image between the two directions.
struct ImageSize {
  std::int64_t height = 0, width = 0;
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};
void resize_image(std::span<const std::byte> from, ImageSize from_size, std::span<std::byte> to, ImageSize to_size,
                  std::int64_t channels);

}  // namespace pmaptrain::data
