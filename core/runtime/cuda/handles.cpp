#include "core/runtime/cuda/handles.h"

#include <fmt/format.h>

#include "core/base/error.h"

namespace pmaptrain::cuda {

void check(cudaError_t status, std::string_view doing) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the error, which the next call would report again
  const std::string message =
      fmt::format("GPU: {}: {} ({})", doing, cudaGetErrorString(status), cudaGetErrorName(status));
  if (status == cudaErrorMemoryAllocation) {
    fail_resource(message, "a smaller batch_size or more microbatches take less memory");
  }
  fail_running(message);
}

void check(cublasStatus_t status, std::string_view doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string message = fmt::format("GPU: {}: {}", doing, cublasLtGetStatusName(status));
  if (status == CUBLAS_STATUS_ALLOC_FAILED) fail_resource(message);
  fail_running(message);
}

void check(nvrtcResult status, std::string_view doing) {
  if (status == NVRTC_SUCCESS) return;
  const std::string message = fmt::format("GPU: {}: {}", doing, nvrtcGetErrorString(status));
  if (status == NVRTC_ERROR_OUT_OF_MEMORY) fail_resource(message);
  fail_running(message);
}

std::string name_of_gpu() {
  int gpu = 0;
  check(cudaGetDevice(&gpu), "asking for the current GPU");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, gpu), "asking for the properties of a GPU");
  return properties.name;
}

OwnGraphExec captured(cudaStream_t stream, const std::function<void()>& record) {
  OwnGraph graph;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning a capture");
  try {
    record();
  } catch (...) {
    cudaStreamEndCapture(stream, graph.create());
    cudaGetLastError();  // clears the error of the capture; the exception of the call says more
    throw;
  }
  check(cudaStreamEndCapture(stream, graph.create()), "ending a capture");
  OwnGraphExec ready;
  check(cudaGraphInstantiate(ready.create(), graph.get(), 0), "making a graph");
  return ready;
}

}  // namespace pmaptrain::cuda
