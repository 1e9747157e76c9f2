// Fuses the gradient of a dense layer's bias with that of its kernel, for GPUs.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Replaces these two equations by one, so that a library may read dy once:
//
//   matmul[transpose_a](x, dy), and behind it reduce_sum over all dimensions but the last (dy) -> matmul_kernel_grad
//
// Both results must have the same type of elements. In regions of loops too. Runs before `fuse_columns`.
Program fuse_bias_gradients(Program program);

}  // namespace pmaptrain
