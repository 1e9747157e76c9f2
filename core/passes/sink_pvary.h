// Moves `pvary` towards its users, so that more equations run on replicated values.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Applies to equations of ops that need no other device. If the operands vary over an axis only because of a `pvary`,
// the equation moves before that `pvary`: it is then computed once for each distinct value rather than on every device.
// Two kinds of equations stay after the `pvary`, because their results are not stored there: broadcasts, which fusion
// copies into its chains; and elementwise equations whose results are read only by elementwise equations on varying
// values, with which they form one chain. So no result needs more memory than before. Results do not change. The
// program must be simplified; the result is simplified and checked.
Program sink_pvary(Program program);

}  // namespace pmaptrain
