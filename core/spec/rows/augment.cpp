// The rows of the random changes of training images.
#include "core/spec/rows/row.h"
#include "core/spec/types/lists.h"

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

static auto row(Tag<RandomResizedCrop>) {
  return alternative<RandomResizedCrop>(
      {.path = "random_resized_crop",
       .meaning = "Takes a part of random size, shape and position and resizes it to the size of the image, as "
                  "torchvision's RandomResizedCrop does. Where ten draws do not fit, the part is in the centre.",
       .example = "augment: [random_resized_crop: {scale: [0.5, 1.0]}]"},
      option(&RandomResizedCrop::scale, {.path = "scale",
                                         .high = 1,
                                         .open_low = true,
                                         .meaning = "The area of the part, as a share of the image's.",
                                         .example = "scale: [0.5, 1.0]"}),
      option(&RandomResizedCrop::ratio,
             {.path = "ratio",
              .high = unbounded,
              .open_low = true,
              .meaning = "The width of the part by its height. The logarithm is drawn uniformly.",
              .example = "ratio: [0.75, 1.3333333333333333]"}));
}

static auto row(Tag<RandomFlip>) {
  return alternative<RandomFlip>({.path = "random_flip",
                                  .meaning = "Mirrors the image left to right, with probability 1/2.",
                                  .example = "augment: [random_flip]"});
}

static auto row(Tag<RandomRotation>) {
  return alternative<RandomRotation>(
      {.path = "random_rotation",
       .meaning =
           "Turns the image about its centre, as torchvision's RandomRotation does: a pixel of the result is the "
           "nearest one of the image, or zero outside of it.",
       .example = "augment: [random_rotation: {degrees: 15}]"},
      option(&RandomRotation::degrees,
             {.path = "degrees",
              .need = Need::required,
              .low = -360,
              .high = 360,
              .shorthand = true,
              .meaning = "The angles, counter-clockwise: those in [min, max], or from -x to x for a number x.",
              .example = "degrees: 15\ndegrees: [0, 90]"}));
}

static auto row(Tag<ColorJitter>) {
  const auto factor = [](std::string_view name, std::string_view meaning, std::string_view example) {
    return Key{.path = std::string(name), .high = unbounded, .meaning = meaning, .example = example};
  };
  return alternative<ColorJitter>(
      {.path = "color_jitter",
       .meaning = "Changes brightness, contrast, saturation and hue in random order, as torchvision's ColorJitter does "
                  "with the images of Pillow. A factor is drawn from [min, max], or from 1 - x, but at least 0, to "
                  "1 + x for a number x. For images of 3 channels; brightness and contrast also of 1 channel.",
       .example = "augment: [color_jitter: {brightness: 0.2, contrast: 0.2, saturation: 0.2, hue: 0.1}]"},
      option(&ColorJitter::brightness, factor("brightness", "The factor of all values: 0 is black, 1 changes nothing.",
                                              "brightness: 0.2\nbrightness: [0.8, 1.2]")),
      option(&ColorJitter::contrast,
             factor("contrast", "The factor of differences from the mean grey: 0 is that grey, 1 changes nothing.",
                    "contrast: 0.2\ncontrast: [0.8, 1.2]")),
      option(&ColorJitter::saturation,
             factor("saturation", "The factor of differences from the pixel's own grey: 0 is grey, 1 changes nothing.",
                    "saturation: 0.2\nsaturation: [0.8, 1.2]")),
      option(&ColorJitter::hue,
             {.path = "hue",
              .low = -0.5,
              .high = 0.5,
              .meaning = "How far colours move around the colour circle, in turns: in [min, max], or "
                         "from -x to x for a number x.",
              .example = "hue: 0.1\nhue: [-0.05, 0.1]"}));
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

// Of mixup and cutmix.
static Key alpha(std::string_view example) {
  return {.path = "alpha",
          .low = 0.001,
          .high = 1000,
          .shorthand = true,
          .meaning =
              "Of the distribution Beta(alpha, alpha), from which the share is drawn: near 0 most batches are "
              "hardly mixed, 1 is uniform.",
          .example = example};
}

static auto row(Tag<Mixup>) {
  return alternative<Mixup>(
      {.path = "mixup",
       .meaning =
           "Replaces each image by a weighted sum of it and another image of the batch (row i of B rows and row "
           "B - 1 - i), and the labels by the same sum: the loss is then that of class probabilities. A share is "
           "drawn for each batch. The last of the list; with softmax_cross_entropy.",
       .example = "augment: [random_flip, mixup: {alpha: 0.2}]"},
      option(&Mixup::alpha, alpha("alpha: 0.2")));
}

static auto row(Tag<Cutmix>) {
  return alternative<Cutmix>(
      {.path = "cutmix",
       .meaning =
           "Replaces a rectangle of each image by that of another image of the batch (row i of B rows and row "
           "B - 1 - i), and the labels by their sum, weighted by the areas. A rectangle is drawn for each batch; "
           "its share of the area is that of the distribution, unless a part of it lies outside. The last of the "
           "list; with softmax_cross_entropy.",
       .example = "augment: [random_flip, cutmix: {alpha: 1.0}]"},
      option(&Cutmix::alpha, alpha("alpha: 1.0")));
}

}  // namespace augment

static auto row(Tag<Augmentation>) { return keys_of<Augmentation>(alternatives(&Augmentation::kind)); }

template struct Section<Augmentation>;
template struct Choice<AugmentationKind>;

}  // namespace pmaptrain::spec
