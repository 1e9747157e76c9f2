#include "core/augment/color.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace pmaptrain::augment {
namespace {

int value_of(std::byte byte) { return std::to_integer<int>(byte); }

// `factor` of the way from `from` to `to`, in f32 and cut off to an integer as in Pillow's blend.
std::byte mixed(int from, int to, float factor) {
  const float exact = static_cast<float>(from) + factor * static_cast<float>(to - from);
  return static_cast<std::byte>(static_cast<int>(std::clamp(exact, 0.0F, 255.0F)));
}

// Mixes one value with all bytes.
void mix(std::span<std::byte> image, int with, double factor) {
  std::array<std::byte, 256> results;
  for (int value = 0; value < 256; ++value) {
    results[static_cast<std::size_t>(value)] = mixed(with, value, static_cast<float>(factor));
  }
  for (std::byte& byte : image) byte = results[std::to_integer<std::size_t>(byte)];
}

// The weights of ITU-R BT.601 in 16 bits, as Pillow converts to grey.
int grey_of(const std::byte* rgb) {
  return (19595 * value_of(rgb[0]) + 38470 * value_of(rgb[1]) + 7471 * value_of(rgb[2]) + 0x8000) >> 16;
}

// Pillow's conversions round each result to f32 (hue, saturation) or an integer, and use f64 in expressions with
// constants. The same is done here, because it affects the low bits.
struct Hsv {
  int hue = 0, saturation = 0, value = 0;  // 0 to 255 each
};

Hsv to_hsv(int red, int green, int blue) {
  const int most = std::max({red, green, blue}), least = std::min({red, green, blue});
  if (most == least) return {0, 0, most};
  const auto range = static_cast<float>(most - least);
  const float saturation = range / static_cast<float>(most);
  const auto distance = [&](int channel) { return static_cast<float>(most - channel) / range; };
  float sixths;
  if (red == most) {
    sixths = distance(blue) - distance(green);
  } else if (green == most) {
    sixths = static_cast<float>(2.0 + double{distance(red)} - double{distance(blue)});
  } else {
    sixths = static_cast<float>(4.0 + double{distance(green)} - double{distance(red)});
  }
  const double turns = double{sixths} / 6.0 + 1.0;  // from 5/6 to 11/6
  const auto hue = static_cast<float>(turns < 1.0 ? turns : turns - 1.0);
  return {static_cast<int>(double{hue} * 255.0), static_cast<int>(double{saturation} * 255.0), most};
}

std::array<int, 3> to_rgb(const Hsv& hsv) {
  const int value = hsv.value;
  if (hsv.saturation == 0) return {value, value, value};
  const double sixths = hsv.hue * 6.0 / 255.0;
  const int sector = static_cast<int>(sixths);
  const auto within = static_cast<float>(sixths - sector);
  const auto saturation = static_cast<float>(hsv.saturation / 255.0);
  // Rounds halves up, which is what std::round does with all of these values, in a quarter of its time.
  const auto part = [&](double taken) {
    const double half_more = value * (1.0 - taken) + 0.5;
    return static_cast<int>(half_more);
  };
  const int least = part(double{saturation});
  const int falling = part(double{saturation * within});
  const int rising = part(double{saturation} * (1.0 - double{within}));
  switch (sector % 6) {
    case 0: return {value, rising, least};
    case 1: return {falling, value, least};
    case 2: return {least, value, rising};
    case 3: return {least, falling, value};
    case 4: return {rising, least, value};
    default: return {value, least, falling};
  }
}

}  // namespace

void change_brightness(std::span<std::byte> image, double factor) { mix(image, 0, factor); }

void change_contrast(std::span<std::byte> image, std::int64_t channels, double factor) {
  assert(channels == 1 || channels == 3);
  std::int64_t sum = 0, pixels = 0;
  for (std::size_t i = 0; i < image.size(); i += static_cast<std::size_t>(channels), ++pixels) {
    sum += channels == 1 ? value_of(image[i]) : grey_of(&image[i]);
  }
  const double half_more = static_cast<double>(sum) / static_cast<double>(pixels) + 0.5;
  mix(image, static_cast<int>(half_more), factor);
}

void change_saturation(std::span<std::byte> image, double factor) {
  assert(image.size() % 3 == 0);
  for (std::size_t i = 0; i < image.size(); i += 3) {
    const int grey = grey_of(&image[i]);
    for (std::byte& byte : image.subspan(i, 3)) byte = mixed(grey, value_of(byte), static_cast<float>(factor));
  }
}

void shift_hue(std::span<std::byte> image, double turns) {
  assert(image.size() % 3 == 0);
  const int shift = static_cast<int>(turns * 255.0);
  for (std::size_t i = 0; i < image.size(); i += 3) {
    Hsv hsv = to_hsv(value_of(image[i]), value_of(image[i + 1]), value_of(image[i + 2]));
    hsv.hue = (hsv.hue + shift) & 255;
    const std::array<int, 3> rgb = to_rgb(hsv);
    for (std::size_t c = 0; c < 3; ++c) image[i + c] = static_cast<std::byte>(rgb[c]);
  }
}

}  // namespace pmaptrain::augment
