// Reports which kernels implement the instructions of a plan, and their costs.
#pragma once

#include <map>
#include <vector>

#include "core/runtime/backend.h"
#include "core/runtime/cpu/bind.h"

namespace pmaptrain::cpu {

// One row for each instruction of the plan, and the instructions in the same order. A loop comes before its body.
struct PlanReport {
  std::vector<InstructionReport> rows;
  std::vector<const Instruction*> instructions;
};
PlanReport report_of(const Plan& plan, const BoundPlan& bound);

}  // namespace pmaptrain::cpu
