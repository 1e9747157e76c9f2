#include "core/augment/color_jitter.h"
#include "core/augment/cutmix.h"
#include "core/augment/cutout.h"
#include "core/augment/mixup.h"
#include "core/augment/random_crop.h"
#include "core/augment/random_flip.h"
#include "core/augment/random_resized_crop.h"
#include "core/augment/random_rotation.h"

namespace pmaptrain::augment {

// In the order of help.
const std::vector<declare::AnyKind>& family(declare::Tag<AugmentationKind>) {
  static const auto all = declare::kinds_of<AugmentationKind, RandomCrop, RandomResizedCrop, RandomFlip, RandomRotation,
                                            ColorJitter, Cutout, Mixup, Cutmix>();
  return all;
}

}  // namespace pmaptrain::augment
