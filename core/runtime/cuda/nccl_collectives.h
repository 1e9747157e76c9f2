// Collectives between GPUs of one process or of several, with NCCL.
#pragma once

#include <nccl.h>

#include "core/runtime/cuda/collectives.h"

namespace pmaptrain::cuda {

// What the ranks of one communicator share that are in this process.
struct NcclGroup {
  explicit NcclGroup(const std::vector<int>& ranks_here) : barrier(ranks_here) {}
  Barrier barrier;
  ncclUniqueId id{};
};
using NcclGroups = SharedMap<NcclGroup>;

// Creates the collectives of the current CUDA device, with rank `rank`. `captured` says whether they may be captured
// into CUDA graphs.
std::unique_ptr<Collectives> make_nccl_collectives(int rank, const gpu::RanksHere& here, int module, NcclGroups& groups,
                                                   const Abort& abort, bool captured);

// The identity of a new communicator of several processes.
gpu::CommunicatorId new_nccl_id();

// The configuration of all communicators.
ncclConfig_t communicator_config();

}  // namespace pmaptrain::cuda
