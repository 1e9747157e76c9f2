// How far a run is, from its events: what the bar shows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/display/bar.h"
#include "core/run/records/events.h"

namespace pmaptrain::display {

// A mean that follows a series of numbers: each new one weighs a tenth, and the first is not favoured. After one that
// is not finite it is that, and begins anew.
class MovingMean {
 public:
  void add(double value);
  std::optional<double> value() const { return value_; }

 private:
  double sum_ = 0, weight_ = 0;
  std::optional<double> value_;
};

// Times are in seconds on any steady clock.
class RunProgress {
 public:
  void take(const run::Event& event, double now);
  // The run's bar, or the one of what is done between steps.
  std::string line(const BarStyle& style) const;
  bool is_running() const { return running_; }

 private:
  void take(const run::Started& event, double now);
  void take(const run::Working& event, double now);
  void take(const run::Progressed& event, double now);
  void take(const std::vector<run::Logged>& event, double now);
  void take(const std::vector<run::Evaluated>& event, double now);
  void take(const run::Ended& event, double now);
  template <class E>
  void take(const E&, double) {}
  void show_moving();
  void measure_speed(std::int64_t step, double now);
  void measure_epoch(const run::Progressed& event, double now);

  BarState state_;
  std::optional<WorkState> work_;
  double work_began_ = 0;
  bool running_ = false, largest_is_best_ = false;
  std::int64_t members_ = 1, steps_per_epoch_ = 0;
  std::string best_metric_, evaluated_split_;
  std::map<std::string, MovingMean> moving_;  // by measure
  double started_ = 0, logged_ = 0;
  struct Mark {
    double time = 0;
    std::int64_t step = 0;
  };
  std::optional<Mark> first_;  // the end of the first step: it prepares kernels and memory
  std::optional<Mark> speed_;  // where steps began to be counted for the speed
  Mark epoch_;                 // where the epoch began
};

}  // namespace pmaptrain::display
