// The random words of a change, and numbers that are drawn from them.
#pragma once

#include <array>
#include <cstdint>

#include "core/base/philox.h"
#include "core/declare/values.h"

namespace pmaptrain::augment {

using declare::Range;
using declare::Spread;

using Words = std::array<std::uint32_t, 4>;

// Uniform in [0, count).
inline std::int64_t below(std::uint32_t word, std::int64_t count) {
  return uniform_below(word, static_cast<std::uint32_t>(count));
}
inline double uniform(std::uint32_t word, const Range& range) {
  return range.low + (range.high - range.low) * (static_cast<double>(word) * 0x1.0p-32);
}
inline Range around(const Spread& spread, double neutral) {
  return spread.range.value_or(Range{neutral - spread.distance, neutral + spread.distance});
}

// The words of one change (its key) at one position of the sample stream.
class Draws {
 public:
  Draws(PhiloxKey key, std::uint64_t position) : key_(key), position_(position) {}
  // Block k of four words; most changes need no more than the first.
  Words words(std::uint32_t k = 0) const {
    return philox4x32(key_, {k, 0, static_cast<std::uint32_t>(position_), static_cast<std::uint32_t>(position_ >> 32)});
  }

 private:
  PhiloxKey key_;
  std::uint64_t position_;
};

}  // namespace pmaptrain::augment
