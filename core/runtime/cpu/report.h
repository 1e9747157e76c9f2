// What a plan consists of, for reports: each step with what carries it out and what it costs.
#pragma once

#include <vector>

#include "core/runtime/backend.h"
#include "core/runtime/cpu/executor.h"

namespace pmaptrain {

struct PlanRow {
  const Step* step = nullptr;
  InstructionReport report;
};

// Of the executor's plan, in its order, loops before what they repeat. The executor must outlive it.
std::vector<PlanRow> rows_of(const CpuExecutor& executor);

}  // namespace pmaptrain
