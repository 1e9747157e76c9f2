// Schedules of the learning rate.
//
// A schedule is one file of this folder and one line of list.cpp: a struct of its numbers and durations, which declares
// their keys (core/declare/kind.h), and `void add(Making& making, std::int64_t start) const` (making.h), which adds its
// curves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/declare/kind.h"

namespace pmaptrain::schedules {

class Making;

// The interface of all kinds.
class ScheduleRules {
 public:
  virtual ~ScheduleRules() = default;

  // The name in the config: "cosine_decay".
  virtual const std::string& name() const = 0;
  // Adds the curves of the schedule, which begins after `start` updates.
  virtual void add(Making& making, std::int64_t start) const = 0;
};

// The interface for a schedule of one kind (making.h).
template <class Kind>
class Held;

// A schedule of any kind.
struct ScheduleKind : declare::Any<ScheduleRules, Held> {
  using Any::Any;
};
// The list of all kinds: list.cpp.
const std::vector<declare::AnyKind>& family(declare::Tag<ScheduleKind>);

// A number, or a schedule of the count of updates.
struct LearningRate {
  LearningRate(double constant = 0.0) : value(constant) {}
  double value;  // without a schedule
  ScheduleKind schedule;
  Place place;

  static declare::Declaration<LearningRate> keys() {
    return declare::map<LearningRate>(
        declare::alternatives(&LearningRate::schedule, &LearningRate::place, &LearningRate::value));
  }
};

}  // namespace pmaptrain::schedules
