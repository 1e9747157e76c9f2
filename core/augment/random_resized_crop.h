// Parts of random size and shape.
#pragma once

#include "core/augment/augmentation.h"

namespace pmaptrain::augment {

struct RandomResizedCrop {
  static constexpr bool moves = true;
  Range scale{0.08, 1.0};         // area of the part, as a share of the image's
  Range ratio{3.0 / 4, 4.0 / 3};  // width by height of the part

  static Declaration<RandomResizedCrop> declaration();
  void change(const Pixels& image, const Draws& draws) const {
    enlarge_part(image.bytes, image.size, part(image.size, draws), image.channels);
  }
  void change_targets(const Pixels& targets, const Draws& draws) const {
    enlarge_part_nearest(targets.bytes, targets.size, part(targets.size, draws), targets.channels);
  }
  // The part of an image of this size. Area and logarithm of the ratio are drawn up to ten times, until the part fits;
  // then it is where it fits, uniformly. Else it is the largest part in the centre whose ratio is allowed. See
  // get_params of torchvision's RandomResizedCrop.
  Box part(ImageSize size, const Draws& draws) const;
};

}  // namespace pmaptrain::augment
