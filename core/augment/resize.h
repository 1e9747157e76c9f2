// Resizing of images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pmaptrain::augment {

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

// A rectangle of pixels.
struct Box {
  std::int64_t top = 0, left = 0;
  ImageSize size;
  friend bool operator==(const Box&, const Box&) = default;
};
// Puts a part of an image [height, width, channels] in place of the whole, resized in the same way to the whole's size.
// No pixel outside of the part counts.
void enlarge_part(std::span<std::byte> image, ImageSize size, const Box& part, std::int64_t channels);

// The same with the nearest pixel, whose value may be no quantity, such as a label: pixel i of n is that of the middle
// (i + 0.5) · size / n, as Pillow's NEAREST. `pixel` is in bytes.
void resize_nearest(std::span<const std::byte> from, ImageSize from_size, std::span<std::byte> to, ImageSize to_size,
                    std::int64_t pixel);
void enlarge_part_nearest(std::span<std::byte> image, ImageSize size, const Box& part, std::int64_t pixel);

}  // namespace pmaptrain::augment
