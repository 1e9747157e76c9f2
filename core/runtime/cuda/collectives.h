// The collectives of a device, by NCCL, or for virtual GPUs by copies and reductions within one GPU.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/cuda/handles.h"
#include "core/runtime/gpu/barrier.h"
#include "core/runtime/gpu/device.h"

namespace pmaptrain::cuda {

using gpu::Abort;
using gpu::Barrier;
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
  Rank(std::vector<int> ranks, const Abort& abort) : abort_(abort), ranks_(std::move(ranks)) {}
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
  const Abort& abort_;         // of the device
  std::int64_t sequence_ = 0;  // number of collectives that were run

 private:
  const std::vector<int> ranks_;
};

// What the ranks of one communicator share that are in this process.
struct NcclGroup {
  explicit NcclGroup(const std::vector<int>& ranks_here) : barrier(ranks_here) {}
  Barrier barrier;
  ncclUniqueId id{};
};
using NcclGroups = SharedMap<NcclGroup>;

// Joins the device with rank `rank`, the current one of CUDA, to a communicator; see
// gpu::Device::create_communicator().
std::unique_ptr<Rank> join_nccl(int rank, const gpu::GpuRange& here, int module, NcclGroups& groups,
                                std::span<const int> ranks, const gpu::CommunicatorId* id, const Abort& abort);

// The identity of a new communicator of several processes.
gpu::CommunicatorId new_nccl_id();

// What the ranks of one communicator of virtual GPUs share.
struct VirtualGroup {
  explicit VirtualGroup(const std::vector<int>& ranks) : barrier(ranks), rank_entries(ranks.size()) {}
  struct RankEntry {
    RankCall call;
    cudaEvent_t ready = nullptr;  // after this event, the values that other ranks read are complete
    cudaEvent_t read = nullptr;   // after this event, this rank has read the values of the other ranks
  };
  Barrier barrier;
  std::vector<RankEntry> rank_entries;
};
using VirtualGroups = SharedMap<VirtualGroup>;

std::unique_ptr<Rank> join_virtual(int rank, int module, VirtualGroups& groups, std::span<const int> ranks,
                                   const Abort& abort);

// Finds a collective of a device that takes too long.
class CollectiveWatchdog {
 public:
  // Must be called when a collective has been queued on the stream. `what` describes it in messages.
  void track(std::string what, cudaStream_t stream);
  // Throws Error (failed) if the oldest tracked collective takes longer than gpu_timeout(), or has failed.
  void check(int rank);

 private:
  struct Queued {
    std::string what;
    OwnEvent end;
  };

  std::deque<Queued> pending_;                          // collectives that are not known to be done
  std::vector<OwnEvent> unused_;                        // events that can be recorded again
  std::chrono::steady_clock::time_point oldest_since_;  // since when check() waits for the oldest one
};

// The index of `rank` in `ranks`. Throws Error (failed) if it is missing or if `ranks` has duplicates.
std::size_t position_of(int rank, std::span<const int> ranks);

}  // namespace pmaptrain::cuda
