// A pass that depends on particular ops, unlike those of core/graph.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Moves `pvary` towards the equations that need it: a local equation whose operands are all equal over an axis, but for
// a `pvary`, is computed before the `pvary`, once for each distinct value and not on every device. Two kinds of
// equations stay behind it, since their results are never stored there: broadcasts, which fusion repeats in its chains,
// and elementwise equations whose results only elementwise equations on varying values read, in whose chains they are.
// So the memory for a result shrinks, or stays none. No bit of a result changes. The program must be simplified; the
// result is simplified and checked.
Program sink_pvary(Program program);

}  // namespace pmaptrain
