// The order of the examples. It is a function of (epoch, position), not a table, so the state of a loader is one
// number.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/philox.h"

namespace pmaptrain::data {

class Sampler {
 public:
  // examples >= 1 in both.
  static Sampler in_order(std::int64_t examples) { return Sampler(examples, {}, false); }
  // A different permutation in each epoch, from a stream of `seed`.
  static Sampler shuffled(std::int64_t examples, std::uint64_t seed, std::string_view stream = "data/shuffle");

  // shuffled(), of sequences with these lengths: each window of `window` batches of that order is sorted by length, the
  // shortest first and equal ones in that order, and cut into batches; all batches of an epoch then come in an order
  // drawn from `seed`. What fills no batch stays at the end of the epoch. batch and window >= 1.
  static Sampler by_length(std::vector<std::int32_t> lengths, std::uint64_t seed, std::int64_t batch,
                           std::int64_t window);

  std::int64_t examples() const { return examples_; }
  bool shuffles() const { return shuffle_; }

  // The example at `position` (0 <= position < examples()) of an epoch (from 0). Every example occurs exactly once in
  // an epoch.
  std::int64_t index(std::int64_t epoch, std::int64_t position) const;

 private:
  class Windows;

  Sampler(std::int64_t examples, PhiloxKey key, bool shuffle);
  std::int64_t permuted(std::int64_t epoch, std::int64_t position) const;

  std::int64_t examples_;
  PhiloxKey key_;
  bool shuffle_;
  int low_bits_ = 0, high_bits_ = 0;  // of the two halves of the Feistel network
  std::shared_ptr<Windows> windows_;  // null unless the order is by length
};

}  // namespace pmaptrain::data
