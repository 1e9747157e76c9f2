// Rotation of images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/augment/resize.h"

namespace pmaptrain::augment {

// Turns an image [height, width, channels] about its centre, counter-clockwise. Each pixel of the result is the nearest
// one of the image, or outside of it zero, or `outside` if that is given. Positions have 16 bits behind the point, as
// in Pillow's Image.rotate with NEAREST, so the pixels are the same (for sides below 16384, from where on Pillow
// computes in floating point).
void rotate_image(std::span<const std::byte> from, ImageSize size, std::int64_t channels, double degrees,
                  std::span<std::byte> to, std::span<const std::byte> outside = {});

}  // namespace pmaptrain::augment
