// Converts error codes of CUDA and its libraries to Error: `resource` if memory is short, `failed` otherwise.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <nvrtc.h>

#include <string_view>

namespace pmaptrain::cuda {

// Throws if `status` is an error. The message is "GPU: <doing>: <reason>".
void check(cudaError_t status, std::string_view doing);
void check(cublasStatus_t status, std::string_view doing);
void check(nvrtcResult status, std::string_view doing);

// NCCL's description of an error, for example "unhandled cuda error: Cuda failure 2 'out of memory'". `communicator`
// may be null.
std::string reason_of(ncclResult_t status, ncclComm_t communicator);

}  // namespace pmaptrain::cuda
