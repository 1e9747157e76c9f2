// Rates of a schedule as numbers.
#pragma once

#include <cstdint>

#include "core/schedules/curves.h"

namespace pmaptrain::step {

// The rate that the equations of the schedule give after `updates` updates of the run.
double rate_after(const schedules::Schedule& schedule, std::int64_t updates);

}  // namespace pmaptrain::step
