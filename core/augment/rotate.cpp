#include "core/augment/rotate.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <numbers>

namespace pmaptrain::augment {
namespace {

// Pillow rounds the entries of its matrix so, which makes quarter turns exact.
double to_15_digits(double value) { return std::nearbyint(value * 1e15) / 1e15; }

constexpr int point = 16;  // bits behind the binary point

std::int64_t fixed(double value) { return static_cast<std::int64_t>(std::floor(value * (1 << point) + 0.5)); }

}  // namespace

void rotate_image(std::span<const std::byte> from, ImageSize size, std::int64_t channels, double degrees,
                  std::span<std::byte> to, std::span<const std::byte> outside) {
  assert(std::ssize(from) == size.height * size.width * channels && from.size() == to.size());
  const double turn = std::fmod(degrees, 360.0);
  const double angle = -(turn < 0 ? turn + 360.0 : turn) * (std::numbers::pi / 180.0);
  const double cosine = to_15_digits(std::cos(angle)), sine = to_15_digits(std::sin(angle));
  // The centre of pixel (x, y) of the result is the point (x0, y0) + x (cosine, -sine) + y (sine, cosine) of the image.
  const double middle_x = static_cast<double>(size.width) / 2, middle_y = static_cast<double>(size.height) / 2;
  const double corner_x = cosine * -middle_x + sine * -middle_y + middle_x;
  const double corner_y = -sine * -middle_x + cosine * -middle_y + middle_y;
  const std::int64_t along_x = fixed(cosine), along_y = fixed(-sine);
  const std::int64_t down_x = fixed(sine), down_y = fixed(cosine);
  std::int64_t row_x = fixed(corner_x + cosine * 0.5 + sine * 0.5);
  std::int64_t row_y = fixed(corner_y + -sine * 0.5 + cosine * 0.5);

  const auto pixel = static_cast<std::size_t>(channels);
  std::fill(to.begin(), to.end(), std::byte{0});
  for (std::size_t at = 0; !outside.empty() && at < to.size(); at += pixel)
    std::memcpy(to.data() + at, outside.data(), pixel);
  std::byte* out = to.data();
  for (std::int64_t y = 0; y < size.height; ++y, row_x += down_x, row_y += down_y) {
    std::int64_t at_x = row_x, at_y = row_y;
    for (std::int64_t x = 0; x < size.width; ++x, at_x += along_x, at_y += along_y, out += pixel) {
      const std::int64_t column = at_x >> point, row = at_y >> point;
      if (column < 0 || column >= size.width || row < 0 || row >= size.height) continue;
      std::memcpy(out, from.data() + (row * size.width + column) * channels, pixel);
    }
  }
}

}  // namespace pmaptrain::augment
