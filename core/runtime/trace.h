// What the workers of a module did in one step, for `run --trace`.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/clock.h"
#include "core/mesh/mesh.h"

namespace pmaptrain {

// Some of the distinct instances of values that vary over `axes`, in mesh order.
struct Instances {
  AxisSet axes;
  std::int64_t first = 0, count = 0;
};

enum class WorkKind : std::uint8_t {
  task,         // the work on some instances between two waits; what follows, until its end, is part of it
  instruction,  // of the plan
  wait,         // for the other workers, at a barrier
  collective,   // between GPUs, beside the instructions
};

struct WorkSpan {
  WorkKind kind = WorkKind::instruction;
  std::int32_t row = -1;  // its index in Module::instructions(), where it has one
  std::int64_t member = 0;
  Instances of;  // of a task; none of work that belongs to no device
  Clock::time_point begin, end;
};

struct StepTrace {
  Clock::time_point begin, end;
  std::vector<std::vector<WorkSpan>> workers;  // each in the order of their beginnings
};

}  // namespace pmaptrain
