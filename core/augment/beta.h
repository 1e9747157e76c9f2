// Shares of the distribution Beta(alpha, alpha), by which mixup and cutmix mix examples.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/augment/augmentation.h"

namespace pmaptrain::augment {

// The words of one place in a stream, one after another.
class WordStream {
 public:
  explicit WordStream(const Draws& draws) : draws_(draws) {}
  std::uint32_t next() {
    if (used_ % 4 == 0) words_ = draws_.words(used_ / 4);
    return words_[used_++ % 4];
  }

 private:
  const Draws& draws_;
  Words words_ = {};
  std::uint32_t used_ = 0;
};

double draw_beta(double alpha, WordStream& words);
// A share in 1 / Mix::whole.
std::uint32_t as_share(double share);

// The key of alpha.
inline declare::Key alpha_key(std::string_view example) {
  return {.path = "alpha",
          .low = 0.001,
          .high = 1000,
          .shorthand = true,
          .meaning =
              "Of the distribution Beta(alpha, alpha), from which the share is drawn: near 0 most batches are "
              "hardly mixed, 1 is uniform.",
          .example = example};
}

}  // namespace pmaptrain::augment
