#include "app/display/progress.h"

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include "core/run/records/lines.h"
#include "core/run/records/spread.h"

namespace pmaptrain::display {
namespace {

constexpr double speed_seconds = 1;        // over which steps per second are measured
constexpr double current_seconds = 10;     // what was logged longer ago says nothing of now
constexpr double least_epoch_seconds = 5;  // the times of a shorter epoch would only flicker

}  // namespace

void MovingMean::add(double value) {
  constexpr double share = 0.1;
  if (!std::isfinite(value)) {
    *this = {};
    value_ = value;
    return;
  }
  sum_ += share * (value - sum_);
  weight_ += share * (1 - weight_);
  value_ = sum_ / weight_;
}

void RunProgress::take(const run::Event& event, double now) {
  std::visit([&](const auto& e) { take(e, now); }, event);
}

std::string RunProgress::line(const BarStyle& style) const {
  return work_ ? work_line(*work_, style) : bar_line(state_, style);
}

void RunProgress::take(const run::Started& event, double now) {
  *this = {};
  running_ = true;
  started_ = now;
  epoch_ = {now, event.first_step};
  members_ = event.members;
  steps_per_epoch_ = event.steps_per_epoch;
  best_metric_ = event.best_metric;
  largest_is_best_ = event.largest_is_best;
  state_.step = event.first_step;
  state_.steps = event.steps;
  if (steps_per_epoch_ > 0) {
    state_.epochs = run::epochs_of(event);
    state_.epoch = event.steps > 0 ? std::min(event.first_step, event.steps - 1) / steps_per_epoch_ + 1 : 0;
  }
  work_ = WorkState{"the first step", 0, 0, -1};
}

void RunProgress::take(const run::Working& event, double now) {
  if (!work_ || work_->what != event.what) work_began_ = now;
  work_ = WorkState{event.what, event.done, event.total, -1};
  if (event.done > 0 && event.total > 0) {
    work_->seconds_left =
        (now - work_began_) / static_cast<double>(event.done) * static_cast<double>(event.total - event.done);
  }
  speed_.reset();
}

void RunProgress::take(const run::Progressed& event, double now) {
  work_.reset();
  state_.step = event.step;
  state_.elapsed = now - started_;
  if (!event.measures.empty()) {
    for (const auto& [name, value] : event.measures) moving_[name].add(value);
    state_.measures = event.measures;
    show_moving();
    if (now - logged_ > current_seconds) state_.examples_per_second = 0;
  }
  measure_epoch(event, now);
  measure_speed(event.step, now);
  state_.epoch = event.epoch;
}

void RunProgress::measure_speed(std::int64_t step, double now) {
  if (!first_) {
    first_ = Mark{now, step};
  } else if (step > first_->step) {
    const double seconds_a_step = (now - first_->time) / static_cast<double>(step - first_->step);
    state_.seconds_left = seconds_a_step * static_cast<double>(state_.steps - step);
    const std::int64_t epoch_end = std::min(state_.steps, epoch_.step + steps_per_epoch_);
    const double epoch_left = seconds_a_step * static_cast<double>(epoch_end - step);
    const bool is_shown =
        steps_per_epoch_ > 0 && state_.epochs > 1 && now - epoch_.time + epoch_left >= least_epoch_seconds;
    state_.epoch_elapsed = is_shown ? now - epoch_.time : -1;
    state_.epoch_left = is_shown ? epoch_left : -1;
  }
  if (!speed_) {
    speed_ = Mark{now, step};
  } else if (now - speed_->time >= speed_seconds) {
    state_.steps_per_second = static_cast<double>(step - speed_->step) / (now - speed_->time);
    speed_ = Mark{now, step};
  }
}

void RunProgress::measure_epoch(const run::Progressed& event, double now) {
  if (event.epoch == state_.epoch || steps_per_epoch_ <= 0) return;
  epoch_ = {now, (event.epoch - 1) * steps_per_epoch_};
}

void RunProgress::take(const std::vector<run::Logged>& event, double now) {
  work_.reset();
  if (event.empty()) return;
  logged_ = now;
  const run::MemberSummary summary = run::summary_of(event);
  state_.step = event.front().step;
  state_.epoch = event.front().epoch;
  state_.measures = summary.medians;
  if (members_ > 1) state_.loss = summary.loss;
  state_.examples_per_second = event.front().examples_per_second;
  show_moving();
}

// Measures are moving means; until there are some, those of the last line.
void RunProgress::show_moving() {
  for (auto& [name, value] : state_.measures) value = moving_[name].value().value_or(value);
}

// Of the split that decides, which is the first that is evaluated.
void RunProgress::take(const std::vector<run::Evaluated>& event, double) {
  work_.reset();
  if (event.empty()) return;
  if (evaluated_split_.empty()) evaluated_split_ = event.front().split;
  if (event.front().split != evaluated_split_) return;
  const run::Measures medians = run::summary_of(event).medians;
  const auto found =
      std::find_if(medians.begin(), medians.end(), [&](const auto& m) { return m.first == best_metric_; });
  const auto& [name, value] = found != medians.end() ? *found : medians.front();
  const bool largest = largest_is_best_ && found != medians.end();
  BarState::Evaluation shown{evaluated_split_ + " " + name, value, value};
  if (state_.evaluation) {
    const double before = state_.evaluation->best;
    const bool is_better = std::isnan(before) || (largest ? value > before : value < before);
    if (!is_better) shown.best = before;
  }
  state_.evaluation = shown;
}

void RunProgress::take(const run::Ended& event, double now) {
  if (!running_) return;
  work_.reset();
  running_ = false;
  state_.step = event.steps;
  state_.seconds = event.seconds > 0 ? event.seconds : now - started_;
  state_.epoch_elapsed = state_.epoch_left = -1;
}

}  // namespace pmaptrain::display
