// The implementation of a device's collectives: NCCL, or copies and reductions between virtual GPUs.
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
using gpu::patience;
using gpu::ranks_text;
using gpu::SharedMap;

// A rank's call of a collective.
struct RankCall {
  gpu::Collective kind = gpu::Collective::all_reduce_sum;
  DType dtype = DType::f32;
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t bytes = 0;
  std::string place = {};  // the place in the program, for messages

  std::int64_t elements() const { return static_cast<std::int64_t>(bytes / size_of(dtype)); }
};

// For example "all_reduce_sum 17 (f32, 4.0 MiB) of communicator {0, 1}, for synchronise: psum".
std::string text_of(const RankCall& call, std::int64_t sequence, std::span<const int> ranks);

class Collectives {
 public:
  virtual ~Collectives() = default;
  Collectives() = default;
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  // Returns the number of the new communicator, counted from 0.
  virtual int create_communicator(int key, std::span<const int> ranks) = 0;
  virtual void run(int communicator, const RankCall& call, cudaStream_t stream) = 0;
  // Whether run() may be captured into a CUDA graph.
  virtual bool can_be_captured() const = 0;
  // A description, for messages, of the call that run() carries out next.
  virtual std::string next(int communicator, const RankCall& call) const = 0;
  // Throws Error (failed) if a collective has failed since the last check().
  virtual void check() = 0;
  // Makes running collectives, and calls that wait for other ranks, return early. Called on other threads than the one
  // that makes the calls.
  virtual void wake() noexcept = 0;
  // Like wake(), on the thread that makes the calls. It must make no further calls, and no graph may contain a
  // collective.
  virtual void end() noexcept = 0;
};

// The index of `rank` in `ranks`. Throws Error (failed) if it is missing or if `ranks` has duplicates.
std::size_t position_of(int rank, std::span<const int> ranks);

}  // namespace pmaptrain::cuda
