#include "core/sweep/halving.h"

#include <algorithm>
#include <cmath>

namespace pmaptrain::sweep {

Score score_of(std::int64_t number, std::span<const std::optional<double>> values) {
  Score score{number, std::nullopt, std::nullopt};
  double sum = 0;
  for (const std::optional<double>& value : values) {
    if (!value) return score;
    sum += *value;
  }
  if (values.empty()) return score;
  const auto n = static_cast<double>(values.size());
  score.value = sum / n;
  if (values.size() < 2) return score;
  double squares = 0;
  for (const std::optional<double>& value : values) squares += (*value - *score.value) * (*value - *score.value);
  score.spread = std::sqrt(squares / (n - 1));
  return score;
}

void rank(std::vector<Score>& scores, spec::Mode mode) {
  std::sort(scores.begin(), scores.end(), [mode](const Score& a, const Score& b) {
    if (a.value.has_value() != b.value.has_value()) return a.value.has_value();
    if (a.value && *a.value < *b.value) return mode == spec::Mode::min;
    if (a.value && *a.value > *b.value) return mode == spec::Mode::max;
    return a.number < b.number;
  });
}

std::vector<std::int64_t> advancing(std::vector<Score> scores, spec::Mode mode, std::int64_t factor) {
  const std::int64_t most = std::max<std::int64_t>(1, std::ssize(scores) / factor);
  rank(scores, mode);
  std::vector<std::int64_t> numbers;
  for (const Score& score : scores) {
    if (score.value && std::ssize(numbers) < most) numbers.push_back(score.number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<std::int64_t> rungs_of(std::int64_t first, std::int64_t factor, std::int64_t all) {
  std::vector<std::int64_t> rungs;
  for (std::int64_t steps = first; steps < all; steps *= factor) {
    rungs.push_back(steps);
    if (steps > all / factor) break;
  }
  rungs.push_back(all);
  return rungs;
}

std::int64_t steps_of(std::span<const std::int64_t> rungs, std::int64_t trials, std::int64_t factor) {
  std::int64_t steps = 0, before = 0;
  for (const std::int64_t rung : rungs) {
    steps += trials * (rung - before);
    before = rung;
    trials = std::max<std::int64_t>(1, trials / factor);
  }
  return steps;
}

}  // namespace pmaptrain::sweep
