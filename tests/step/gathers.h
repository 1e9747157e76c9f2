// How often processes exchange shards of parameters in a step.
#pragma once

#include "core/graph/program.h"
#include "core/runtime/cpu/plan.h"

namespace pmaptrain::testing {

struct GathersOfPlan {
  int all = 0, beside_pieces = 0;  // the second: those of a stage in which workers also compute
};

inline GathersOfPlan gathers_of(const cpu::Plan& plan) {
  GathersOfPlan found;
  for (const cpu::Stage& stage : plan.stages) {
    for (const cpu::Instruction& task : stage.tasks) {
      const auto* const sent = task.as<cpu::Communicate>();
      if (sent == nullptr || !sent->equation->origin->scope.starts_with("gather")) continue;
      ++found.all;
      found.beside_pieces += stage.piece_lists.empty() ? 0 : 1;
    }
  }
  return found;
}

}  // namespace pmaptrain::testing
