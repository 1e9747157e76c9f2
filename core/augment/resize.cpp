#include "core/augment/resize.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/memory.h"

namespace pmaptrain::augment {
namespace {

// Weights are integers with this many bits. Their sum times 255 fits a signed 32-bit integer.
constexpr int precision = 32 - 8 - 2;

// The pixels of the source that one pixel of the result is a weighted sum of.
struct Window {
  std::int64_t first = 0;
  std::span<const std::int32_t> weights;
};

// The windows of one direction, which are equal for all rows or columns.
class Filter {
 public:
  Filter(std::int64_t from, std::int64_t to) {
    const double scale = static_cast<double>(from) / static_cast<double>(to);
    const double support = std::max(scale, 1.0);  // half of the triangle's base
    stride_ = static_cast<std::size_t>(std::ceil(support)) * 2 + 1;
    first_.resize(static_cast<std::size_t>(to));
    counts_.resize(first_.size());
    weights_.resize(first_.size() * stride_);
    std::vector<double> exact(stride_);
    for (std::size_t i = 0; i < first_.size(); ++i) {
      const double centre = (static_cast<double>(i) + 0.5) * scale;
      const auto begin = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(centre - support + 0.5)));
      const auto end = std::min(from, static_cast<std::int64_t>(std::floor(centre + support + 0.5)));
      first_[i] = begin;
      counts_[i] = static_cast<std::size_t>(end - begin);
      double sum = 0;
      for (std::size_t k = 0; k < counts_[i]; ++k) {
        const double distance =
            std::abs((static_cast<double>(begin) + static_cast<double>(k) - centre + 0.5) / support);
        exact[k] = distance < 1.0 ? 1.0 - distance : 0.0;
        sum += exact[k];
      }
      for (std::size_t k = 0; k < counts_[i]; ++k) {
        weights_[i * stride_ + k] = static_cast<std::int32_t>(std::floor(0.5 + exact[k] / sum * (1 << precision)));
      }
    }
  }

  Window window(std::size_t i) const { return {first_[i], std::span(weights_).subspan(i * stride_, counts_[i])}; }

 private:
  std::size_t stride_ = 0;
  std::vector<std::int64_t> first_;
  std::vector<std::size_t> counts_;
  std::vector<std::int32_t> weights_;
};

std::byte rounded(std::int32_t sum) {
  return static_cast<std::byte>(std::clamp((sum + (1 << (precision - 1))) >> precision, 0, 255));
}

std::int32_t value(std::byte pixel) { return std::to_integer<std::int32_t>(pixel); }

// `stride` is the distance in bytes between rows of the source.
void resize_rows(const std::byte* from, std::int64_t rows, std::int64_t stride, std::int64_t width,
                 std::int64_t new_width, std::int64_t channels, std::byte* to) {
  const Filter filter(width, new_width);
  for (std::int64_t y = 0; y < rows; ++y, from += stride) {
    for (std::int64_t x = 0; x < new_width; ++x) {
      const Window window = filter.window(static_cast<std::size_t>(x));
      for (std::int64_t c = 0; c < channels; ++c) {
        std::int32_t sum = 0;
        const std::byte* pixel = from + window.first * channels + c;
        for (const std::int32_t weight : window.weights) {
          sum += weight * value(*pixel);
          pixel += channels;
        }
        *to++ = rounded(sum);
      }
    }
  }
}

// `row` is the number of bytes of a row.
void resize_columns(const std::byte* from, std::int64_t height, std::int64_t new_height, std::int64_t row,
                    std::byte* to) {
  const Filter filter(height, new_height);
  std::vector<std::int32_t> sums(static_cast<std::size_t>(row));
  for (std::int64_t y = 0; y < new_height; ++y) {
    const Window window = filter.window(static_cast<std::size_t>(y));
    std::fill(sums.begin(), sums.end(), 0);
    const std::byte* pixels = from + window.first * row;
    for (const std::int32_t weight : window.weights) {
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += weight * value(pixels[i]);
      pixels += row;
    }
    for (const std::int32_t sum : sums) *to++ = rounded(sum);
  }
}

}  // namespace

void resize_image(std::span<const std::byte> from, ImageSize from_size, std::span<std::byte> to, ImageSize to_size,
                  std::int64_t channels) {
  assert(std::ssize(from) == from_size.height * from_size.width * channels);
  assert(std::ssize(to) == to_size.height * to_size.width * channels);
  if (from_size == to_size) {
    std::copy(from.begin(), from.end(), to.begin());
    return;
  }
  // A direction that keeps its size is left out.
  const std::byte* rows = from.data();
  Memory between;
  if (from_size.width != to_size.width) {
    const bool last = from_size.height == to_size.height;
    if (!last) {
      between = allocate(static_cast<std::uint64_t>(from_size.height * to_size.width * channels), "resizing an image");
    }
    std::byte* const out = last ? to.data() : between.view.data();
    resize_rows(from.data(), from_size.height, from_size.width * channels, from_size.width, to_size.width, channels,
                out);
    if (last) return;
    rows = out;
  }
  resize_columns(rows, from_size.height, to_size.height, to_size.width * channels, to.data());
}

void enlarge_part(std::span<std::byte> image, ImageSize size, const Box& part, std::int64_t channels) {
  assert(std::ssize(image) == size.height * size.width * channels);
  assert(part.top >= 0 && part.size.height >= 1 && part.top + part.size.height <= size.height);
  assert(part.left >= 0 && part.size.width >= 1 && part.left + part.size.width <= size.width);
  if (part.size == size) return;
  // Between the directions the image is not read any more. A direction that keeps its size has weights of one pixel.
  const std::int64_t row = size.width * channels;
  std::vector<std::byte> rows(static_cast<std::size_t>(part.size.height * row));
  resize_rows(image.data() + part.top * row + part.left * channels, part.size.height, row, part.size.width, size.width,
              channels, rows.data());
  resize_columns(rows.data(), part.size.height, size.height, row, image.data());
}

namespace {

// The pixel of `size` that is nearest to pixel `i` of `count`.
std::int64_t nearest(std::int64_t i, std::int64_t count, std::int64_t size) { return (2 * i + 1) * size / (2 * count); }

// `part` of the image `from`, whose rows have `row` bytes.
void take_nearest(const std::byte* from, std::int64_t row, const Box& part, std::byte* to, ImageSize to_size,
                  std::int64_t pixel) {
  for (std::int64_t y = 0; y < to_size.height; ++y) {
    const std::byte* const line = from + (part.top + nearest(y, to_size.height, part.size.height)) * row;
    for (std::int64_t x = 0; x < to_size.width; ++x, to += pixel) {
      const std::int64_t at = part.left + nearest(x, to_size.width, part.size.width);
      std::memcpy(to, line + at * pixel, static_cast<std::size_t>(pixel));
    }
  }
}

}  // namespace

void resize_nearest(std::span<const std::byte> from, ImageSize from_size, std::span<std::byte> to, ImageSize to_size,
                    std::int64_t pixel) {
  assert(std::ssize(from) == from_size.height * from_size.width * pixel);
  assert(std::ssize(to) == to_size.height * to_size.width * pixel);
  take_nearest(from.data(), from_size.width * pixel, {0, 0, from_size}, to.data(), to_size, pixel);
}

void enlarge_part_nearest(std::span<std::byte> image, ImageSize size, const Box& part, std::int64_t pixel) {
  const std::vector<std::byte> from(image.begin(), image.end());
  take_nearest(from.data(), size.width * pixel, part, image.data(), size, pixel);
}

}  // namespace pmaptrain::augment
