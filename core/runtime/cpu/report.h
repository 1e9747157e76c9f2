// Reports which kernels implement the instructions of a plan, and their costs.
#pragma once

#include <map>
#include <vector>

#include "core/runtime/backend.h"
#include "core/runtime/cpu/bind.h"
#include "core/runtime/rendezvous.h"

namespace pmaptrain::cpu {

// A row for each instruction of a plan, and the instructions in the same order. A loop comes before its body.
struct InstructionRows {
  std::vector<InstructionReport> rows;
  std::vector<const Instruction*> instructions;
};
InstructionRows report_of(const Plan& plan, const BoundPlan& bound);

// What the process does for the collectives of the program.
std::map<const Equation*, std::vector<RankStep>> rank_steps_of(const Plan& plan);

// The bytes of the messages to other processes in a step.
std::size_t bytes_sent(const BoundPlan& bound);
// Adds the messages of a step, in order, in which `process` takes part.
void add_messages(const BoundPlan& bound, int process, std::vector<Rendezvous>& all);

}  // namespace pmaptrain::cpu
