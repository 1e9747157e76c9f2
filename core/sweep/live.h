// What a run that goes on has logged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace pmaptrain::sweep {

// Follows metrics.jsonl of a run folder. Without a file, and of lines that cannot be read, it learns nothing.
class LiveMetrics {
 public:
  struct Member {
    std::optional<double> loss;   // of training; this and `value`: none before the first one, or if it is not finite
    std::optional<double> value;  // of the last evaluation of the split that selects
    std::optional<double> least, largest;  // of these evaluations
  };

  LiveMetrics(const std::filesystem::path& run, std::string metric)
      : file_(run / "metrics.jsonl"), metric_(std::move(metric)) {}

  // Reads the lines that have come since the last call; of a long file `most` bytes at the end.
  void update(std::int64_t most = std::int64_t{4} << 20);

  std::int64_t step() const { return step_; }    // of the last line; 0: none
  double seconds() const { return seconds_; }    // of training, at the last line that says it
  std::int64_t epoch() const { return epoch_; }  // the same
  // A run alone is member 0.
  Member member(std::int64_t number) const;

 private:
  void take(std::string_view text);

  std::filesystem::path file_;
  std::string metric_;
  std::int64_t read_ = 0;  // bytes of whole lines
  std::int64_t step_ = 0, epoch_ = 0;
  double seconds_ = 0;
  bool validates_ = false;
  std::map<std::int64_t, Member> members_;
};

}  // namespace pmaptrain::sweep
