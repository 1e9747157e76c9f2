// The dialect of our GPU kernels. nvcc compiles them for a GPU; the host's compiler makes functions of them, which
// core/kernel/simt_host.h runs thread by thread for tests.
//
// The dialect: `extern "C" __global__` functions of pointers, std::int64_t and double; threadIdx, blockIdx, blockDim
// and gridDim in one dimension; SHARED(type, name, count) for an array in shared memory, which begins without values;
// __syncthreads() and __syncthreads_or(). No dynamic shared memory, no atomics, no textures, no assembly. Sums and
// products are not contracted (nvcc's -fmad=false), so that the four operations and the square root have the bits of
// the CPU.
#pragma once

#if defined(__CUDACC__)
#define SHARED(type, name, count) __shared__ type name[count]
#else
#include "core/kernel/simt_host.h"
#endif
