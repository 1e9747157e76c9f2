// RAII owners of CUDA objects, and error codes of CUDA and its libraries as Error.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <nvrtc.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace pmaptrain::cuda {

// Throws Error if `status` is an error: `resource` if memory is short, `failed` otherwise. The message is "GPU:
// <doing>: <reason>".
void check(cudaError_t status, std::string_view doing);
void check(cublasStatus_t status, std::string_view doing);
void check(nvrtcResult status, std::string_view doing);

// Owns a handle of a library and destroys it with `destroy`. Errors of `destroy` are ignored.
template <class T, auto destroy>
class Handle {
 public:
  Handle() = default;
  ~Handle() { reset(); }
  Handle(Handle&& other) noexcept : value_(std::exchange(other.value_, T{})) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      value_ = std::exchange(other.value_, T{});
    }
    return *this;
  }

  T get() const { return value_; }
  explicit operator bool() const { return value_ != T{}; }
  // Empties the handle, and returns the address to which a function of the library writes a new object.
  T* create() {
    reset();
    return &value_;
  }

 private:
  void reset() {
    if (value_ != T{}) static_cast<void>(destroy(std::exchange(value_, T{})));
  }

  T value_{};
};

using OwnStream = Handle<cudaStream_t, cudaStreamDestroy>;
using OwnEvent = Handle<cudaEvent_t, cudaEventDestroy>;
using OwnGraph = Handle<cudaGraph_t, cudaGraphDestroy>;
using OwnGraphExec = Handle<cudaGraphExec_t, cudaGraphExecDestroy>;
using OwnLibrary = Handle<cudaLibrary_t, cudaLibraryUnload>;
using DeviceMemory = Handle<void*, cudaFree>;
using PinnedMemory = Handle<void*, cudaFreeHost>;

// The name of the calling thread's GPU.
std::string name_of_gpu();

// Creates an event that records no timestamps (cudaEventDisableTiming), because events with timing cost more.
inline OwnEvent make_event() {
  OwnEvent event;
  check(cudaEventCreateWithFlags(event.create(), cudaEventDisableTiming), "creating an event");
  return event;
}

// The calls that `record` makes on the stream, as a graph, without running them.
OwnGraphExec captured(cudaStream_t stream, const std::function<void()>& record);

// Whether all that came before the event is done. Throws Error if that has failed.
inline bool is_done(const OwnEvent& event, std::string_view what) {
  const cudaError_t state = cudaEventQuery(event.get());
  if (state != cudaErrorNotReady) check(state, what);
  if (state == cudaErrorNotReady) cudaGetLastError();  // clears the error, which the next call would report
  return state == cudaSuccess;
}

}  // namespace pmaptrain::cuda
