// Detects an abrupt rise of the loss, from the mean losses of log lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pmaptrain::run {

// The mean loss of the steps (from, to], the steps since the previous log line.
struct LossMean {
  std::int64_t from = 0, to = 0;
  double loss = 0;
  friend bool operator==(const LossMean&, const LossMean&) = default;
};

class LossSpike {
 public:
  // A mean is a spike if it is more than `factor` times the median of the means within the `window` steps before it.
  // `means` is the state of an earlier process.
  LossSpike(double factor, std::int64_t window, std::vector<LossMean> means = {})
      : factor_(factor), window_(window), means_(std::move(means)) {}

  // Takes the mean of the next log line, and returns a warning if it is a spike. There are no spikes until the means
  // cover the whole window. A mean that is not finite is ignored, because another guard reports it.
  std::optional<std::string> observe(const LossMean& mean);

  // The state: the means with which the next lines are compared, oldest first.
  const std::vector<LossMean>& means() const { return means_; }

 private:
  double factor_;
  std::int64_t window_;
  std::vector<LossMean> means_;
};

}  // namespace pmaptrain::run
