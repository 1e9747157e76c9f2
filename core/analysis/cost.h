// The cost of one step of a program.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Floating-point operations, and bytes read and written, over the whole mesh. A loop's body counts once for each
// iteration; work on replicated values counts once. Views cost nothing. Inside a fused equation, only arithmetic
// counts. `wire` has the bytes that each device sends, by the axes of the collective.
Cost cost_of(const Program& program);
// The cost of one equation, run once.
Cost cost_of(const Program& program, const Equation& equation);
// The floating-point operations of the equations inside a fused equation, on one device.
double flops_inside(const Program& program, const Equation& equation);

}  // namespace pmaptrain
