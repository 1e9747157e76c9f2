// The augmentations of a run: what they do to each image and each batch of the sample stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/augment/augmentation.h"
#include "core/base/field.h"
#include "core/base/philox.h"

namespace pmaptrain::augment {

// Throws Error (usage), placed at the augmentation, if it cannot change inputs like these, or move what targets have
// for each pixel, [height, width] or [height, width, channels]. Labels of pixels from outside of an image are
// `ignored`.
void check_augment(const std::vector<Augmentation>& augment, const Field& input, const Field& target,
                   std::optional<std::int64_t> ignored);

// The changes of `data.augment`. What happens to an image depends on the seed, the change and the position in the
// sample stream alone.
class Augmenter {
 public:
  Augmenter() = default;  // changes nothing
  // check_augment() has accepted the fields.
  Augmenter(const std::vector<Augmentation>& augment, const Field& input, std::uint64_t seed, const Field& target = {},
            std::optional<std::int64_t> ignored = {});

  bool changes() const { return !operations_.empty(); }
  // Changes an image [height, width, channels] at `position` of the sample stream (epoch * examples + position in the
  // epoch), and its target where that has something for each pixel.
  void apply(std::int64_t position, std::byte* image, std::byte* target = nullptr) const;

 private:
  struct Operation {
    AugmentationKind kind;
    PhiloxKey key;
  };
  std::vector<Operation> operations_;
  ImageSize size_;
  std::int64_t channels_ = 0;
  std::int64_t target_bytes_ = 0;   // of each pixel; 0: the target is of the whole image
  std::vector<std::byte> outside_;  // the target of a pixel outside of the image
};

// The first augmentation that mixes examples: in a config that is accepted, the last of the list. Null if there is
// none.
const Augmentation* mixing_augmentation(std::span<const Augmentation> augment);

// Draws how batches are mixed. It depends on the seed and the number of the step alone, so all rows of a batch are
// mixed alike, whatever the mesh.
class Mixer {
 public:
  Mixer() = default;  // mixes nothing
  // check_augment() has accepted `input`.
  Mixer(const std::vector<Augmentation>& augment, const Field& input, std::uint64_t seed);

  bool mixes() const { return static_cast<bool>(kind_); }
  Mix draw(std::int64_t step) const;
  // Mixes the image of an example with that of its partner, which is not changed. A value is rounded to nearest.
  void mix_image(const Mix& mix, std::byte* image, const std::byte* partner) const;
  // Mixes its target, class probabilities.
  static void mix_target(const Mix& mix, std::span<float> target, std::span<const float> partner);

 private:
  AugmentationKind kind_;
  PhiloxKey key_ = {};
  ImageSize size_;
  std::int64_t channels_ = 0;
};

}  // namespace pmaptrain::augment
