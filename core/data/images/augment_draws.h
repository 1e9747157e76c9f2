// The random parameters of the changes to one image, drawn from the random words of its place in the sample stream.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "core/base/philox.h"
#include "core/data/images/resize.h"
#include "core/spec/spec.h"

namespace pmaptrain::data {

using Words = std::array<std::uint32_t, 4>;

// Uniform in [0, count).
inline std::int64_t below(std::uint32_t word, std::int64_t count) {
  return uniform_below(word, static_cast<std::uint32_t>(count));
}

// The words of one change (its key) at one position of the sample stream.
class Draws {
 public:
  Draws(PhiloxKey key, std::uint64_t position) : key_(key), position_(position) {}
  // Block k of four words; most changes need no more than the first.
  Words words(std::uint32_t k = 0) const {
    return philox4x32(key_, {k, 0, static_cast<std::uint32_t>(position_), static_cast<std::uint32_t>(position_ >> 32)});
  }

 private:
  PhiloxKey key_;
  std::uint64_t position_;
};

// In degrees.
double draw_angle(const spec::augment::RandomRotation& rotation, const Draws& draws);

enum class ColorStep { brightness, contrast, saturation, hue };
struct ColorChange {
  std::array<ColorStep, 4> order = {};                // each of the 24 orders alike often
  std::array<std::optional<double>, 4> amounts = {};  // by ColorStep; none: the step is left out
  std::optional<double> amount(ColorStep step) const { return amounts[static_cast<std::size_t>(step)]; }
};
ColorChange draw_color_change(const spec::augment::ColorJitter& jitter, const Draws& draws);

// Whether an amount around `neutral` (1 for factors, 0 for the hue) can be anything else.
bool changes(const spec::Spread& spread, double neutral);

// The part of an image of this size. Area and logarithm of the ratio are drawn up to ten times, until the part fits;
// then it is where it fits, uniformly. Else it is the largest part in the centre whose ratio is allowed. See get_params
// of torchvision's RandomResizedCrop.
Box draw_part(const spec::augment::RandomResizedCrop& crop, ImageSize size, const Draws& draws);

}  // namespace pmaptrain::data
