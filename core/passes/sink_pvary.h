// Moves `pvary` towards its users, so that more equations run on replicated values.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// A local equation whose operands would all be equal along an axis without a `pvary` is computed before that `pvary`:
// once for each distinct value and not on every device. Two kinds of equations stay after the `pvary`, since their
// results are not stored there: broadcasts, which fusion repeats in its chains, and elementwise equations whose results
// are read only by elementwise equations on varying values, which become one chain with them. So no result needs more
// memory than before. No bit of a result changes. The program must be simplified; the result is simplified and checked.
Program sink_pvary(Program program);

}  // namespace pmaptrain
