// The subset of CUDA C++ in which our GPU kernels are written. nvcc compiles them for a GPU. In tests, the host's
// compiler compiles them to functions, which core/kernel/simt_host.h runs once for each thread of a grid.
//
// The subset consists of `extern "C" __global__` functions with arguments that are pointers, std::int64_t or double;
// one-dimensional threadIdx, blockIdx, blockDim and gridDim; SHARED(type, name, count), which declares an uninitialized
// array in shared memory; __syncthreads() and __syncthreads_or(). There is no dynamic shared memory, and there are no
// atomics or textures. What the lanes of a warp exchange is in core/ops/support/warp.cuh, and products on tensor cores
// are in core/ops/support/tensor.cuh, which has the only assembly. Products and sums are not contracted (nvcc's
// -fmad=false), so basic arithmetic and square roots have the same results as on the CPU.
#pragma once

#if defined(__CUDACC__)
#define SHARED(type, name, count) __shared__ type name[count]
#define UNROLL _Pragma("unroll")
#else
#include "core/kernel/simt_host.h"
#define UNROLL
#endif
