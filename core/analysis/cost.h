// The cost of one step of a program.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Counts floating-point operations and bytes read and written, summed over all devices of the mesh. The body of a loop
// counts once for each iteration. Work on values that are equal on some devices counts once for these. Views cost
// nothing.
// Of the equations inside a fused equation only the operations count, because their results are never stored.
// `Cost::wire` lists the axes of each collective and the bytes that one device sends.
Cost cost_of(const Program& program);
// Those of its operations on values that are equal on all devices along `axes`, once for these: each of them may have
// to do that work.
double flops_without(const Program& program, AxisSet axes);
// The operations of one device; of these on values that are equal on all devices along `without`, if there are any.
double flops_of_device(const Program& program, AxisSet without = {});
// One number for the cost of a program: operations plus bytes.
double work_of(const Program& program);
// The cost of one equation that runs once.
Cost cost_of(const Program& program, const Equation& equation);
// The floating-point operations of the equations inside a fused equation, on one device.
double flops_inside(const Program& program, const Equation& equation);

}  // namespace pmaptrain
