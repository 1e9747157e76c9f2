// Random changes of training images, bytes to bytes, in place. augment_draws.h draws the random parameters;
// image_rotate.h, image_color.h and image_resize.h have the longer changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/philox.h"
#include "core/data/dataset.h"
#include "core/spec/spec.h"

namespace pmaptrain::data {

// Throws Error (usage), placed at the augmentation, if it cannot change inputs like these.
void check_augment(const std::vector<spec::Augmentation>& augment, const Field& input);

// The changes of `data.augment`. What happens to an image depends on the seed, the change and the position in the
// sample stream alone.
class Augmenter {
 public:
  Augmenter() = default;  // changes nothing
  // check_augment() has accepted `input`.
  Augmenter(const std::vector<spec::Augmentation>& augment, const Field& input, std::uint64_t seed);

  bool changes() const { return !operations_.empty(); }
  // Changes an image [height, width, channels] at `position` of the sample stream (epoch * examples + position in the
  // epoch).
  void apply(std::int64_t position, std::byte* image) const;

 private:
  struct Operation {
    spec::AugmentationKind kind;
    PhiloxKey key;
  };
  std::vector<Operation> operations_;
  std::int64_t height_ = 0, width_ = 0, channels_ = 0;
};

}  // namespace pmaptrain::data
