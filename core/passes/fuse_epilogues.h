// Moves work that follows a convolution, a matrix product or a pooling into that op.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Replaces the following pairs of equations by one equation, unless the value between them is read elsewhere too:
//
//   relu of a conv or matmul                               -> the op with relu
//   select(x > 0, max_pool_grad(x, dy), 0)                 -> max_pool_grad with relu
//   conv_kernel_grad(x, dy), reduce_sum[dims=[0,1,2]](dy)  -> conv_kernel_grad with bias
//
// The program must be simplified; the result is simplified.
Program fuse_epilogues(Program program);

}  // namespace pmaptrain
