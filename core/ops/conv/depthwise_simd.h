// Depthwise convolution of f32 with the widest vector instructions of the CPU: the loops over one image.
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/ops/conv/runs.h"

namespace pmaptrain::ops {

// The windows of a target image with `target_columns` x `features` elements per row, on a source image with
// `source_columns` x `features`.
struct DepthwisePass {
  std::vector<Run> rows, columns;
  std::int64_t source_columns = 0, target_columns = 0, window_columns = 0, features = 0;
};

// target[p, f] = bias[f] (null: 0) + the sum over the window of kernel[t, f] source[p + t, f], in the kernel's order,
// and then relu where `relu` is set.
void depthwise_sums(const DepthwisePass& pass, const float* source, const float* kernel, const float* bias, bool relu,
                    float* target);

// dkernel[t, f] += the sum over targets of source[p + t, f] target[p, f]. The sums of each row are computed separately.
void depthwise_kernel_sums(const DepthwisePass& pass, const float* source, const float* target, float* dkernel);

// to[i · times + j] = from[i], and its transpose, to[i] = the sum over j of from[i · times + j].
void repeat_elements(std::size_t n, std::size_t times, const float* from, float* to);
void add_neighbours(std::size_t n, std::size_t times, const float* from, float* to);

}  // namespace pmaptrain::ops

#endif  // PMAPTRAIN_REFERENCE_KERNELS
