// Whether the loss rose abruptly, judged at log lines from the means between them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pmaptrain::train {

// The mean loss of the steps (from, to]: those since the log line before.
struct LossMean {
  std::int64_t from = 0, to = 0;
  double loss = 0;
  friend bool operator==(const LossMean&, const LossMean&) = default;
};

class LossSpike {
 public:
  // A mean is a spike if it is more than `factor` times the median of the means within `window` steps before it.
  // `means` is the state of an earlier run.
  LossSpike(double factor, std::int64_t window, std::vector<LossMean> means = {})
      : factor_(factor), window_(window), means_(std::move(means)) {}

  // The mean of a log line; calls are in order. Returns the words of a warning for a spike. There is none until the
  // means reach back over the whole window. A mean that is not finite is left out: another guard reports it.
  std::optional<std::string> observe(const LossMean& mean);

  // The state: what the next lines are compared with, oldest first.
  const std::vector<LossMean>& means() const { return means_; }

 private:
  double factor_;
  std::int64_t window_;
  std::vector<LossMean> means_;
};

}  // namespace pmaptrain::train
