// The rows of the random changes of training images.
#include "core/spec/row.h"

namespace pmaptrain::spec {

namespace augment {

static auto row(Tag<RandomCrop>) {
  return alternative<RandomCrop>(
      {.path = "random_crop",
       .meaning = "Pads the image with zeros on each side and takes a part of the original size at a random position.",
       .example = "augment: [random_crop: {padding: 4}]"},
      option(&RandomCrop::padding, {.path = "padding",
                                    .need = Need::required,
                                    .low = 1,
                                    .high = 65535,
                                    .shorthand = true,
                                    .meaning = "Number of pixels on each side.",
                                    .example = "padding: 4"}));
}

static auto row(Tag<RandomFlip>) {
  return alternative<RandomFlip>({.path = "random_flip",
                                  .meaning = "Mirrors the image left to right, with probability 1/2.",
                                  .example = "augment: [random_flip]"});
}

static auto row(Tag<Cutout>) {
  return alternative<Cutout>(
      {.path = "cutout",
       .meaning = "Sets a square to zero. Its centre is a random pixel of the image, so a part of it may lie outside.",
       .example = "augment: [cutout: {size: 8}]"},
      option(&Cutout::size, {.path = "size",
                             .need = Need::required,
                             .low = 1,
                             .high = 65535,
                             .shorthand = true,
                             .meaning = "The side of the square, in pixels.",
                             .example = "size: 8"}));
}

}  // namespace augment

static auto row(Tag<Augmentation>) { return keys_of<Augmentation>(alternatives(&Augmentation::kind)); }

template struct Section<Augmentation>;
template struct Choice<AugmentationKind>;

}  // namespace pmaptrain::spec
