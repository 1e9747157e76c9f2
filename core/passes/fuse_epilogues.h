// A pass that depends on particular ops, unlike those of core/graph.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Moves equations that follow a convolution, a matrix product or a pooling into it, where nothing else reads the value
// between them:
//
//   relu of a conv or matmul                        -> the op with relu
//   select(x > 0, max_pool_grad(x, dy), 0)          -> max_pool_grad with relu
//   conv_kernel_grad(x, dy), reduce_sum of dy's pixels -> conv_kernel_grad with bias
//
// Values that an output or another equation needs stay. The program must be simplified, and the result is.
Program fuse_epilogues(Program program);

}  // namespace pmaptrain
