// Mixes pairs of training images and their targets: mixup (https://arxiv.org/abs/1710.09412) and CutMix
// (https://arxiv.org/abs/1905.04899).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/philox.h"
#include "core/data/dataset.h"
#include "core/data/images/resize.h"
#include "core/spec/spec.h"

namespace pmaptrain::data {

// The first augmentation that mixes examples: in a config that is accepted, the last of the list. Null if there is
// none.
const spec::Augmentation* mixing_augmentation(std::span<const spec::Augmentation> augment);

// How the rows of a batch are mixed, each with its partner.
struct Mix {
  static constexpr std::uint32_t whole = 1U << 16;
  std::uint32_t share = whole;            // of an example's own target, in 1 / whole
  std::optional<Box> box = std::nullopt;  // CutMix: the part of the image that is the partner's
};

// Draws how batches are mixed. It depends on the seed and the number of the step alone, so all rows of a batch are
// mixed alike, whatever the mesh.
class Mixer {
 public:
  Mixer() = default;  // mixes nothing
  // check_augment() has accepted `input`.
  Mixer(const std::vector<spec::Augmentation>& augment, const Field& input, std::uint64_t seed);

  bool mixes() const { return kind_.has_value(); }
  Mix draw(std::int64_t step) const;
  // Mixes the image of an example with that of its partner, which is not changed. A value is rounded to nearest.
  void mix_image(const Mix& mix, std::byte* image, const std::byte* partner) const;
  // Mixes its target, class probabilities.
  static void mix_target(const Mix& mix, std::span<float> target, std::span<const float> partner);

 private:
  std::optional<spec::AugmentationKind> kind_;
  PhiloxKey key_ = {};
  ImageSize size_;
  std::int64_t channels_ = 0;
};

// Examples whose labels i32 [] are probabilities f32 [classes]: 1 for the label.
std::shared_ptr<const Dataset> one_hot_labels(std::shared_ptr<const Dataset> labelled, std::int64_t classes);

}  // namespace pmaptrain::data
