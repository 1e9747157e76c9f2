// The code of all kernels in core/ops/gpu_kernels.h, for the one source that makes a table of them: nvcc's, and the
// host's in tests. nvcc needs --expt-relaxed-constexpr, since kernels share constexpr functions with the CPU, and
// -fmad=false.
#pragma once

#include "core/ops/argmax/gpu.cuh"
#include "core/ops/attention/gpu.cuh"
#include "core/ops/attention/tensor.cuh"
#include "core/ops/avg_pool/gpu.cuh"
#include "core/ops/cumsum/gpu.cuh"
#include "core/ops/first_occurrence/gpu.cuh"
#include "core/ops/gather/gpu.cuh"
#include "core/ops/iota/gpu.cuh"
#include "core/ops/matmul/gpu.cuh"
#include "core/ops/max_pool/gpu.cuh"
#include "core/ops/norms/gpu.cuh"
#include "core/ops/one_hot/gpu.cuh"
#include "core/ops/random/gpu.cuh"
#include "core/ops/recurrent/gpu.cuh"
#include "core/ops/reduce/gpu.cuh"
#include "core/ops/scatter/gpu.cuh"
#include "core/ops/scatter_add/gpu.cuh"
#include "core/ops/scatter_add/sorted.cuh"
#include "core/ops/segment_sum/gpu.cuh"
#include "core/ops/support/copy.cuh"
#include "core/ops/top_k/gpu.cuh"
