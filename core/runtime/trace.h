// A record of what the workers of a module did in one step, for `run --trace`.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/clock.h"
#include "core/mesh/mesh.h"

namespace pmaptrain {

// A range of the instances of values that vary over `axes` (README.md), counted in mesh order.
struct InstanceRange {
  AxisSet axes;
  std::int64_t first = 0, count = 0;
};

enum class WorkKind : std::uint8_t {
  task,         // work of a worker without waits; the following spans that begin before its end are nested in it
  instruction,  // an instruction of the plan
  wait,         // waiting for the other workers at a barrier
  collective,   // a collective between GPUs, which overlaps with instructions
};

struct WorkSpan {
  WorkKind kind = WorkKind::instruction;
  std::int32_t row = -1;  // the index in Module::instructions(); -1 if there is none
  std::int64_t member = 0;
  InstanceRange of;  // the instances that a task works on; no instances for other spans and for replicated values
  Clock::time_point begin, end;
};

struct StepTrace {
  Clock::time_point begin, end;
  std::vector<std::vector<WorkSpan>> workers;  // the spans of each worker, in the order of their begins
};

}  // namespace pmaptrain
