#include "core/data/sampler.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <mutex>
#include <utility>

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

// The order of one epoch at a time, which is made when an example of the epoch is asked for.
class Sampler::Windows {
 public:
  Windows(Sampler order, std::vector<std::int32_t> lengths, std::uint64_t seed, std::int64_t batch, std::int64_t window)
      : order_(std::move(order)),
        batches_(shuffled(std::max<std::int64_t>(1, order_.examples() / batch), seed, "data/buckets")),
        lengths_(std::move(lengths)),
        batch_(batch),
        window_(std::min(window, batches_.examples())) {}

  // The first positions of an epoch are those of whole batches.
  std::int64_t sorted_examples() const { return order_.examples() / batch_ * batch_; }

  std::int64_t index(std::int64_t epoch, std::int64_t position) {
    const std::int64_t batch = batches_.index(epoch, position / batch_);
    const std::lock_guard lock(mutex_);
    if (epoch != epoch_) sort(epoch);
    return sorted_[static_cast<std::size_t>(batch * batch_ + position % batch_)];
  }

 private:
  void sort(std::int64_t epoch) {
    sorted_.resize(static_cast<std::size_t>(sorted_examples()));
    for (std::size_t i = 0; i < sorted_.size(); ++i) sorted_[i] = order_.permuted(epoch, static_cast<std::int64_t>(i));
    const auto window = static_cast<std::size_t>(window_ * batch_);
    for (std::size_t first = 0; first < sorted_.size(); first += window) {
      const auto begin = sorted_.begin() + static_cast<std::ptrdiff_t>(first);
      std::stable_sort(begin, begin + static_cast<std::ptrdiff_t>(std::min(window, sorted_.size() - first)),
                       [&](std::int64_t a, std::int64_t b) {
                         return lengths_[static_cast<std::size_t>(a)] < lengths_[static_cast<std::size_t>(b)];
                       });
    }
    epoch_ = epoch;
  }

  const Sampler order_, batches_;
  const std::vector<std::int32_t> lengths_;
  const std::int64_t batch_, window_;
  std::mutex mutex_;  // of what follows: threads share the examples of a batch
  std::vector<std::int64_t> sorted_;
  std::int64_t epoch_ = -1;
};

Sampler Sampler::by_length(std::vector<std::int32_t> lengths, std::uint64_t seed, std::int64_t batch,
                           std::int64_t window) {
  Sampler order = shuffled(std::ssize(lengths), seed);
  order.windows_ = std::make_shared<Windows>(order, std::move(lengths), seed, batch, window);
  return order;
}

std::int64_t Sampler::index(std::int64_t epoch, std::int64_t position) const {
  assert(epoch >= 0 && position >= 0 && position < examples_);
  if (!shuffle_) return position;
  if (windows_ && position < windows_->sorted_examples()) return windows_->index(epoch, position);
  return permuted(epoch, position);
}

std::int64_t Sampler::permuted(std::int64_t epoch, std::int64_t position) const {
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
