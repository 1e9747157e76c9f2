// Who carries out the collectives of one device: NCCL, or copies and reductions between virtual GPUs.
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

// One call of a collective, of one rank.
struct RankCall {
  gpu::Collective kind = gpu::Collective::all_reduce_sum;
  DType dtype = DType::f32;
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t bytes = 0;
  std::string place = {};  // in the program

  std::int64_t elements() const { return static_cast<std::int64_t>(bytes / size_of(dtype)); }
};

// "all_reduce_sum 17 (f32, 4.0 MiB) of communicator {0, 1}, for synchronise: psum"
std::string text_of(const RankCall& call, std::int64_t sequence, std::span<const int> ranks);

class Collectives {
 public:
  virtual ~Collectives() = default;
  Collectives() = default;
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  // The number of the communicator, from 0.
  virtual int join(int key, std::span<const int> ranks) = 0;
  virtual void run(int communicator, const RankCall& call, cudaStream_t stream) = 0;
  // Whether run() may be captured into a CUDA graph.
  virtual bool can_be_captured() const = 0;
  // The name, for messages, of the call that run() carries out next.
  virtual std::string next(int communicator, const RankCall& call) const = 0;
  // Throws Error (failed) for a collective that has failed since the last check().
  virtual void check() = 0;
  // Makes running collectives, and calls that wait for other ranks, return early. For threads other than the one that
  // makes the calls.
  virtual void wake() noexcept = 0;
  // The same for the thread that makes the calls: it makes no further call, and no graph contains a collective.
  virtual void end() noexcept = 0;
};

// The position of `rank` among `ranks`. Throws Error (failed) where it is missing or one of them is there twice.
std::size_t position_of(int rank, std::span<const int> ranks);

}  // namespace pmaptrain::cuda
