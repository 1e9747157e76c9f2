// Random changes of colours.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "core/augment/augmentation.h"

namespace pmaptrain::augment {

enum class ColorStep { brightness, contrast, saturation, hue };
struct ColorChange {
  std::array<ColorStep, 4> order = {};                // each of the 24 orders alike often
  std::array<std::optional<double>, 4> amounts = {};  // by ColorStep; none: the step is left out
  std::optional<double> amount(ColorStep step) const { return amounts[static_cast<std::size_t>(step)]; }
};

struct ColorJitter {
  Spread brightness, contrast, saturation;  // factors, around 1
  Spread hue;                               // turns of the colour circle, around 0

  static Declaration<ColorJitter> declaration();
  Misfit misfit(const Shape& shape) const;
  void change(const Pixels& image, const Draws& draws) const;
  ColorChange drawn(const Draws& draws) const;
};

}  // namespace pmaptrain::augment
