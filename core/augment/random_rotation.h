// Rotations by random angles.
#pragma once

#include <vector>

#include "core/augment/augmentation.h"
#include "core/augment/rotate.h"

namespace pmaptrain::augment {

struct RandomRotation {
  static constexpr bool moves = true, fills = true;
  Spread degrees;

  static Declaration<RandomRotation> declaration() {
    return declare::kind<RandomRotation>(
        {.path = "random_rotation",
         .meaning =
             "Turns the image about its centre, as torchvision's RandomRotation does: a pixel of the result is the "
             "nearest one of the image, or zero outside of it.",
         .example = "augment: [random_rotation: {degrees: 15}]"},
        field(&RandomRotation::degrees,
              {.path = "degrees",
               .need = Need::required,
               .low = -360,
               .high = 360,
               .shorthand = true,
               .meaning = "The angles, counter-clockwise: those in [min, max], or from -x to x for a number x.",
               .example = "degrees: 15\ndegrees: [0, 90]"}));
  }
  void change(const Pixels& image, const Draws& draws) const {
    const std::vector<std::byte> from(image.bytes.begin(), image.bytes.end());
    rotate_image(from, image.size, image.channels, angle(draws), image.bytes, image.outside);
  }
  double angle(const Draws& draws) const { return uniform(draws.words()[0], around(degrees, 0)); }
};

}  // namespace pmaptrain::augment
