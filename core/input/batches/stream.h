// The sample stream of training: the examples in their order, epoch after epoch, with their random changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/augment/augmenter.h"
#include "core/base/philox.h"
#include "core/data/dataset.h"
#include "core/data/sampler.h"

namespace pmaptrain::input {

class Stream {
 public:
  // Implicit: an order without changes.
  Stream(data::Sampler order, augment::Augmenter augmenter = {}, augment::Mixer mixer = {})
      : order_(std::move(order)), augmenter_(std::move(augmenter)), mixer_(std::move(mixer)) {}

  const data::Sampler& order() const { return order_; }
  // How the examples of a batch are mixed with each other.
  const augment::Mixer& mixer() const { return mixer_; }
  // Draws an offset for each epoch at which windows begin, from 0 to `offsets` - 1 (Dataset::offsets).
  void draw_offsets(std::int64_t offsets, std::uint64_t seed) {
    offsets_ = offsets;
    offset_key_ = stream_key(seed, "data/offset");
  }

  // Whether epochs differ.
  bool is_random() const { return order_.shuffles() || augmenter_.changes() || mixer_.mixes() || offsets_ > 1; }

  std::int64_t offset(std::int64_t epoch) const {
    const auto at = static_cast<std::uint64_t>(epoch);
    const std::uint32_t word =
        philox4x32(offset_key_, {0, 0, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at >> 32)})[0];
    return uniform_below(word, static_cast<std::uint32_t>(offsets_));
  }

  // Reads the example at `position` of an epoch; both count from 0. See Dataset::read.
  void read(const data::Dataset& dataset, std::int64_t epoch, std::int64_t position, std::byte* input,
            std::byte* target) const {
    const std::int64_t index = order_.index(epoch, position);
    if (offsets_ > 1) {
      dataset.read_at(offset(epoch), index, input, target);
    } else {
      dataset.read(index, input, target);
    }
    augmenter_.apply(epoch * order_.examples() + position, input, target);
  }

 private:
  data::Sampler order_;
  augment::Augmenter augmenter_;
  augment::Mixer mixer_;
  std::int64_t offsets_ = 1;
  PhiloxKey offset_key_ = {};
};

}  // namespace pmaptrain::input
