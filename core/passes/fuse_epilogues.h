// Moves elementwise work that follows a convolution, a product or a pooling into that op.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Moves equations into the convolution, matrix product or pooling that they follow, if nothing else reads the value
// between them:
//
//   relu of a conv or matmul                        -> the op with relu
//   select(x > 0, max_pool_grad(x, dy), 0)          -> max_pool_grad with relu
//   conv_kernel_grad(x, dy), reduce_sum of dy's pixels -> conv_kernel_grad with bias
//
// A value that an output or another equation reads is kept. The program must be simplified; the result is simplified.
Program fuse_epilogues(Program program);

}  // namespace pmaptrain
