// What the instructions of a plan are carried out by, and what they cost.
#pragma once

#include <map>
#include <vector>

#include "core/runtime/backend.h"
#include "core/runtime/cpu/bind.h"

namespace pmaptrain::cpu {

// A row for each instruction of the plan, loops before what they repeat; the instructions themselves in the same order.
struct PlanReport {
  std::vector<InstructionReport> rows;
  std::vector<const Instruction*> instructions;
};
PlanReport report_of(const Plan& plan, const Bound& bound);

}  // namespace pmaptrain::cpu
