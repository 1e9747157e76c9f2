// When the buffers of a plan are read and written, in the order of its commands.
#pragma once

#include <vector>

#include "core/runtime/gpu/plan.h"

namespace pmaptrain::gpu {

// Positions count from 1; the commands of one equation that follow one another have the same.
struct Lifetime {
  int first = 0, last = 0;  // of any access; 0 where there is none. What a loop reads from outside lives to its end
  const Equation* first_by = nullptr;  // what begins it
  const Equation* last_by = nullptr;
};

std::vector<Lifetime> lifetimes_of(const Plan& plan);

}  // namespace pmaptrain::gpu
