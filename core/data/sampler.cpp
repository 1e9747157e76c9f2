#include "core/data/sampler.h"

#include <bit>
#include <cassert>

namespace pmaptrain::data {
namespace {

// A Feistel network is a permutation of [0, 2^bits) for any round function: each round adds a function of one half to
// the other half, which is invertible. Halves differ by one bit at most; 8 rounds.
constexpr std::uint32_t rounds = 8;

constexpr std::uint64_t mask(int bits) { return (std::uint64_t{1} << bits) - 1; }

}  // namespace

Sampler::Sampler(std::int64_t examples, PhiloxKey key, bool shuffle)
    : examples_(examples), key_(key), shuffle_(shuffle) {
  assert(examples >= 1);
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(examples - 1)));
  low_bits_ = bits - bits / 2;
  high_bits_ = bits / 2;
}

Sampler Sampler::shuffled(std::int64_t examples, std::uint64_t seed, std::string_view stream) {
  return Sampler(examples, stream_key(seed, stream), true);
}

std::int64_t Sampler::index(std::int64_t epoch, std::int64_t position) const {
  assert(epoch >= 0 && position >= 0 && position < examples_);
  if (!shuffle_) return position;
  const auto epoch_low = static_cast<std::uint32_t>(epoch);
  const auto epoch_high = static_cast<std::uint32_t>(static_cast<std::uint64_t>(epoch) >> 32);
  auto value = static_cast<std::uint64_t>(position);
  // Cycle walking: what lands past the end is permuted again until it lands inside. This ends, because following a
  // permutation from an inside point comes back to that point; and it is a permutation of the inside points. The
  // network's range is less than twice the examples, so less than two turns are needed on average.
  do {
    std::uint64_t low = value & mask(low_bits_);
    std::uint64_t high = value >> low_bits_;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      const bool to_low = round % 2 == 0;
      const auto from = static_cast<std::uint32_t>(to_low ? high : low);
      const std::uint32_t word = philox4x32(key_, {from, round, epoch_low, epoch_high})[0];
      if (to_low) {
        low ^= word & mask(low_bits_);
      } else {
        high ^= word & mask(high_bits_);
      }
    }
    value = high << low_bits_ | low;
  } while (value >= static_cast<std::uint64_t>(examples_));
  return static_cast<std::int64_t>(value);
}

}  // namespace pmaptrain::data
