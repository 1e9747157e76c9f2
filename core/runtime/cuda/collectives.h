// The interface of a device to its collectives, which are implemented by NCCL, or for virtual GPUs by copies and
// reductions within one GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/runtime/gpu/barrier.h"
#include "core/runtime/gpu/device.h"
#include "core/runtime/gpu/environment.h"

namespace pmaptrain::cuda {

using gpu::Abort;
using gpu::Barrier;
using gpu::gpu_timeout;
using gpu::ranks_text;
using gpu::SharedMap;

// One rank's arguments of a collective; see gpu::Device::collective().
struct RankCall {
  gpu::Collective kind = gpu::Collective::all_reduce_sum;
  DType dtype = DType::f32;
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t bytes = 0;
  std::string place = {};  // for messages: the layer and the op, for example "synchronise: psum"

  std::int64_t elements() const { return static_cast<std::int64_t>(bytes / size_of(dtype)); }
};

// Describes a call for messages, for example "all_reduce_sum 17 (f32, 4.0 MiB) of communicator {0, 1}, for synchronise:
// psum". `sequence` is the number of collectives that the communicator has run before.
std::string text_of(const RankCall& call, std::int64_t sequence, std::span<const int> ranks);

class Collectives {
 public:
  virtual ~Collectives() = default;
  Collectives() = default;
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  // Returns the number of the new communicator, counted from 0. See gpu::Device::create_communicator().
  virtual int create_communicator(int key, std::span<const int> ranks, const gpu::CommunicatorId* id) = 0;
  virtual void run(int communicator, const RankCall& call, cudaStream_t stream) = 0;
  // Whether run() may be captured into a CUDA graph.
  virtual bool can_be_captured() const = 0;
  // The text_of() of `call`, if it is the next call of run() on this communicator.
  virtual std::string next(int communicator, const RankCall& call) const = 0;
  // Throws Error (failed) if a collective has failed since the last check().
  virtual void check() = 0;
  // See gpu::Device::late_call(). Called on another thread than the device's.
  virtual std::string late_call() const { return {}; }
};

// The index of `rank` in `ranks`. Throws Error (failed) if it is missing or if `ranks` has duplicates.
std::size_t position_of(int rank, std::span<const int> ranks);

}  // namespace pmaptrain::cuda
