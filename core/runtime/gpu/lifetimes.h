// The live ranges of buffers in a plan, in the order of its commands.
#pragma once

#include <vector>

#include "core/runtime/gpu/plan.h"

namespace pmaptrain::gpu {

// Positions count from 1. Successive commands of the same equation have the same position.
struct Lifetime {
  // Positions of the first and the last access, or 0 if there is none. A buffer that a loop reads from outside lives to
  // the loop's end.
  int first = 0, last = 0;
  const Equation* first_by = nullptr;  // the equation of the first access
  const Equation* last_by = nullptr;
};

std::vector<Lifetime> lifetimes_of(const Plan& plan);

// The live ranges within some commands of a plan that is being made: the accesses outside of them are left out.
std::vector<Lifetime> lifetimes_in(const std::vector<Command>& commands, const Plan& plan);

}  // namespace pmaptrain::gpu
