// What part of a case's combinations is run. By default a covering set, and of the others one slice, which changes from
// commit to commit: CI sets PMAPTRAIN_TEST_SLICE from the commit's hash. PMAPTRAIN_TEST_ALL=1: all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/running.h"

namespace pmaptrain::test {

struct Slices {
  bool all = false;
  std::uint64_t number = 0;
};

// From the values of the two variables; null where one is not set. Throws std::runtime_error for any other value than
// "", "0" and "1", and "" and a number.
Slices read_slices(const char* all, const char* number);

// Those of the environment, which main() has checked.
const Slices& slices();

// Divides the combinations of a case into `count` slices, one after the other.
class Slice {
 public:
  explicit Slice(std::uint64_t count, const Slices& chosen = slices()) : count_(count), chosen_(chosen) {}

  // Whether the next combination is run. One of the covering set always is.
  bool takes(bool covering = false) {
    if (covering) return true;
    return next_++ % count_ == chosen_.number % count_ || chosen_.all;
  }

 private:
  std::uint64_t count_, next_ = 0;
  Slices chosen_;
};

// How many slices a case has that is fast, but not with a sanitizer.
constexpr std::uint64_t slices_with_sanitizer(std::uint64_t count) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return count;
#else
  return count > 0 ? 1 : 0;
#endif
}

// For values that are run one for each combination: each time another one by default, and which ones changes from slice
// to slice. Each case begins anew, so that it runs the same by itself.
class Turns {
 public:
  explicit Turns(const Slices& chosen = slices()) : chosen_(chosen) {}

  // Of the numbers below `count`, the one whose turn it is, or all of them.
  std::vector<std::size_t> next(std::size_t count) {
    if (std::exchange(case_, number_of_case()) != number_of_case()) next_ = 0;
    std::vector<std::size_t> values{static_cast<std::size_t>((chosen_.number + next_++) % count)};
    for (std::size_t other = 0; chosen_.all && other < count; ++other) {
      if (other != values.front()) values.push_back(other);
    }
    return values;
  }

 private:
  Slices chosen_;
  std::uint64_t next_ = 0, case_ = number_of_case();
};

// Of the numbers below `all`, those below `covering`, and of the others one of `count` slices.
inline std::vector<std::uint32_t> some_seeds(std::uint32_t covering, std::uint32_t all, std::uint64_t count,
                                             const Slices& chosen = slices()) {
  std::vector<std::uint32_t> seeds;
  Slice slice(count, chosen);
  for (std::uint32_t seed = 0; seed < all; ++seed) {
    if (slice.takes(seed < covering)) seeds.push_back(seed);
  }
  return seeds;
}

}  // namespace pmaptrain::test
