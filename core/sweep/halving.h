// Successive halving (Jamieson and Talwalkar 2016, arXiv:1502.07943): after each rung, the best trials go on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/spec/durations.h"

namespace pmaptrain::sweep {

// A trial with the values of its replicates. One without a value makes the trial's score none.
struct Score {
  std::int64_t number = 0;
  std::optional<double> value;   // the mean over replicates
  std::optional<double> spread;  // the standard deviation (n - 1); none for a single one
};
Score score_of(std::int64_t number, std::span<const std::optional<double>> values);

// The better first; those without a value last; equal ones by number.
void rank(std::vector<Score>& scores, spec::Mode mode);

// The numbers of the trials that go on to the next rung, ascending: the best max(1, n / factor), those without a value
// never.
std::vector<std::int64_t> advancing(std::vector<Score> scores, spec::Mode mode, std::int64_t factor);

// The lengths of the rungs in steps: first * factor^k below `all`, and `all`.
std::vector<std::int64_t> rungs_of(std::int64_t first, std::int64_t factor, std::int64_t all);

// The steps that `trials` trials take in all, where each rung chooses as advancing() does.
std::int64_t steps_of(std::span<const std::int64_t> rungs, std::int64_t trials, std::int64_t factor);

}  // namespace pmaptrain::sweep
