#include "core/schedules/making.h"

#include "core/base/text.h"

namespace pmaptrain::schedules {

void Making::add_rate(const LearningRate& rate, std::int64_t start, bool is_reached) {
  if (!rate.schedule) return add(start, constant(scaled(rate.value)));
  const bool around = std::exchange(is_reached_, is_reached_ && is_reached);
  place_ = rate.place;
  rate.schedule->add(*this, start);
  is_reached_ = around;
}

std::int64_t Making::steps(const std::optional<Duration>& given, const char* key, std::int64_t start) const {
  if (given) return steps_of_(*given, key);
  if (start < run_) return run_ - start;
  refuse(std::string(key) + " is what is left of the run, but this schedule begins after " + with_commas(start) +
             " of " + counted(run_, "step"),
         std::string("give it a ") + key + ", or begin it earlier");
}

std::int64_t Making::next_boundary(const Duration& duration, const char* key, std::int64_t before) const {
  const std::int64_t at = steps_of_(duration, key);
  if (at > before) return at;
  refuse(
      duration.place,
      std::string(key) + ": this boundary is " + counted(at, "step") + ", the one before it " + counted(before, "step"),
      "boundaries count from the start of the schedule and ascend");
}

bool Making::reaches(const Duration& boundary, std::int64_t steps, const char* key, std::int64_t start,
                     const char* effect) {
  if (start + steps < run_) return true;
  if (is_reached_) out_.unreached.push_back({key, boundary.place, start + steps, effect});
  return false;
}

void Making::refuse(const Place& place, std::string message, std::string help) {
  throw Error(ExitStatus::usage, Diagnostic{"config", place, std::move(message), std::move(help), {}});
}

Schedule make_schedule(const LearningRate& rate, const StepsOf& steps_of, std::int64_t length, double factor) {
  Schedule schedule{rate.schedule ? rate.schedule->name() : "learning_rate", rate.place, {}};
  Making(steps_of, length, factor, schedule).add_rate(rate, 0);
  return schedule;
}

}  // namespace pmaptrain::schedules
