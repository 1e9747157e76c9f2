// A pass that knows ops, which those of core/graph do not.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Moves what follows a convolution, a matrix product or a pooling into it, where nobody else sees the value between:
//
//   relu of a conv or matmul                        -> the op with relu
//   select(x > 0, max_pool_grad(x, dy), 0)          -> max_pool_grad with relu
//   conv_kernel_grad(x, dy), reduce_sum of dy's pixels -> conv_kernel_grad with bias
//
// Values that a result or another equation needs stay. Of a simplified program; it comes out simplified.
Program fuse_epilogues(Program program);

}  // namespace pmaptrain
