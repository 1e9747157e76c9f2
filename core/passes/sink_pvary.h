// Moves `pvary` towards its users, so that more equations run on replicated values.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// If the operands of a local equation are equal along an axis except for a `pvary`, the equation is computed before
// that `pvary`: once for each distinct value rather than on every device. Two kinds of equations stay after the
// `pvary`, because their results are not stored there: broadcasts, which fusion repeats in its chains; and elementwise
// equations whose results are read only by elementwise equations on varying values, with which they form one chain. So
// no result needs more memory than before. Results do not change. The program must be simplified; the result is
// simplified and checked.
Program sink_pvary(Program program);

}  // namespace pmaptrain
