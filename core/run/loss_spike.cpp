#include "core/run/loss_spike.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pmaptrain::run {
namespace {

// `means` is not empty.
double median(const std::vector<LossMean>& means) {
  std::vector<double> losses;
  losses.reserve(means.size());
  for (const LossMean& mean : means) losses.push_back(mean.loss);
  std::sort(losses.begin(), losses.end());
  const std::size_t middle = losses.size() / 2;
  return losses.size() % 2 == 1 ? losses[middle] : losses[middle - 1] / 2 + losses[middle] / 2;
}

}  // namespace

std::optional<std::string> LossSpike::observe(const LossMean& mean) {
  if (!std::isfinite(mean.loss)) return std::nullopt;
  // Means that end before the window are dropped; a mean that begins before it and ends in it counts.
  const std::int64_t begin = mean.from - window_;
  std::erase_if(means_, [&](const LossMean& old) { return old.to <= begin; });
  std::optional<std::string> warning;
  if (!means_.empty() && means_.front().from <= begin) {
    const double usual = median(means_);
    if (mean.loss > factor_ * usual) {
      warning = fmt::format(
          "step {}: the mean loss of the last {} is {:.4g}, more than {:g} times the median {:.4g} of the {} before "
          "(train.loss_spike)",
          mean.to, mean.to - mean.from == 1 ? "step" : fmt::format("{} steps", mean.to - mean.from), mean.loss, factor_,
          usual, window_ == 1 ? "step" : fmt::format("{} steps", window_));
    }
  }
  means_.push_back(mean);
  return warning;
}

}  // namespace pmaptrain::run
