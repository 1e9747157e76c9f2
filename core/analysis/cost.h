// What one step of a program costs.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Floating operations and bytes read and written over the whole mesh, loops counted as often as they run; work on
// replicated values counts once. Views cost nothing; of a chain of equations inside a fused one, only the arithmetic
// does. `wire` is what each device sends, by the axes of the collective.
Cost cost_of(const Program& program);
// The same of one equation, carried out once.
Cost cost_of(const Program& program, const Equation& equation);
// The floating operations of the equations that a fused one computes at once, on one device.
double flops_inside(const Program& program, const Equation& equation);

}  // namespace pmaptrain
