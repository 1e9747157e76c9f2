// Noise on the pixels of synthetic images: a sum of four uniform bytes, which is approximately normal. All arithmetic
// is in integers, so the bits are the same on every machine.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/base/philox.h"

namespace pmaptrain::data {

class PixelNoise {
 public:
  // `noise` is the standard deviation, relative to the range of a pixel; this is it in the units of the constructor.
  static std::int64_t scale_of(double noise) {
    // A sum of four uniform bytes has the standard deviation sqrt(4 · (256² - 1) / 12), and pixels a range of 255.
    return std::llround(noise * 255.0 / std::sqrt((65536.0 - 1.0) / 3.0) * 65536.0);
  }

  PixelNoise(std::int64_t scale, PhiloxKey key, std::uint64_t row, std::uint32_t lane)
      : scale_(scale), key_(key), row_(row), lane_(lane) {}

  // The next pixel, from its value without noise.
  std::byte operator()(std::uint8_t value) {
    if (next_ == words_.size()) {
      philox_row(key_, row_ << 24 | piece_++, lane_, words_);
      next_ = 0;
    }
    const std::uint32_t w = words_[next_++];
    const std::uint32_t sum = (w & 255) + (w >> 8 & 255) + (w >> 16 & 255) + (w >> 24);
    const std::int64_t offset = (static_cast<std::int64_t>(sum) - 510) * scale_;
    return static_cast<std::byte>(std::clamp<std::int64_t>(value + ((offset + 32768) >> 16), 0, 255));
  }

 private:
  std::int64_t scale_;  // in 1/65536
  PhiloxKey key_;
  std::uint64_t row_, piece_ = 0;
  std::uint32_t lane_;
  // Drawn in chunks, so that noise needs no memory of the size of an image; each chunk is a row of its own lane.
  std::array<std::uint32_t, 512> words_ = {};
  std::size_t next_ = 512;
};

}  // namespace pmaptrain::data
