// Changes of the colours of images, in place and to the bit as Pillow makes them. An image is [height, width,
// channels].
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pmaptrain::augment {

// Pillow's ImageEnhance: mixes the image with black, with the grey of the image's mean lightness, or with each pixel's
// grey. A factor of 0 gives only the latter, 1 changes nothing, and more than 1 extrapolates. Factors are at least 0.
void change_brightness(std::span<std::byte> image, double factor);
void change_contrast(std::span<std::byte> image, std::int64_t channels, double factor);  // of 1 or 3 channels
void change_saturation(std::span<std::byte> image, double factor);                       // of 3 channels

// torchvision's adjust_hue of an image of Pillow: colours of 3 channels become hue, saturation and value of 8 bits, the
// hue moves by `turns` of the colour circle, rounded to 255ths towards 0, and back. Even 0 turns lose low bits.
void shift_hue(std::span<std::byte> image, double turns);

}  // namespace pmaptrain::augment
