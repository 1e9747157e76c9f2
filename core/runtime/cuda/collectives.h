// The interface of a device to its collectives, which are implemented by NCCL, or for virtual GPUs by copies and
// reductions within one GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
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

// One rank of a communicator.
class Rank {
 public:
  explicit Rank(std::vector<int> ranks) : ranks_(std::move(ranks)) {}
  virtual ~Rank() = default;
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  const std::vector<int>& ranks() const { return ranks_; }
  // The text_of() of `call`, if it is the next call of run().
  std::string next(const RankCall& call) const { return text_of(call, sequence_, ranks_); }
  // Must precede all other calls. It may block, so other threads must already know this rank (late_call()).
  virtual void connect() {}
  virtual void run(const RankCall& call, cudaStream_t stream) = 0;
  // Throws Error (failed) if an earlier collective has failed.
  virtual void check_earlier() {}
  // See gpu::Device::late_call(). Called on another thread than the device's.
  virtual std::string late_call() const { return {}; }

 protected:
  std::int64_t sequence_ = 0;  // number of collectives that were run

 private:
  const std::vector<int> ranks_;
};

// The communicators of a device.
class Collectives {
 public:
  using Join = std::function<std::unique_ptr<Rank>(std::span<const int> ranks, const gpu::CommunicatorId* id)>;
  Collectives(Join join, bool can_be_captured) : join_(std::move(join)), can_be_captured_(can_be_captured) {}

  // Returns the number of the new communicator, counted from 0. See gpu::Device::create_communicator().
  int create_communicator(std::span<const int> ranks, const gpu::CommunicatorId* id);
  Rank& operator[](gpu::Communicator communicator) { return *all_[static_cast<std::size_t>(communicator.number)]; }
  // Whether Rank::run() may be captured into a CUDA graph.
  bool can_be_captured() const { return can_be_captured_; }
  void check();                   // Rank::check_earlier() of each
  std::string late_call() const;  // the first one

 private:
  const Join join_;
  const bool can_be_captured_;
  mutable std::mutex mutex_;  // protects changes of `all_`, which late_call() reads
  std::vector<std::unique_ptr<Rank>> all_;
};

// The index of `rank` in `ranks`. Throws Error (failed) if it is missing or if `ranks` has duplicates.
std::size_t position_of(int rank, std::span<const int> ranks);

}  // namespace pmaptrain::cuda
