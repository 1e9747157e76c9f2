// Collectives of GPUs of one machine, by NCCL.
#pragma once

#include <nccl.h>

#include "core/runtime/cuda/collectives.h"
#include "core/runtime/gpu/ending.h"
#include "core/runtime/gpu/lookout.h"

namespace pmaptrain::cuda {

// What the ranks of a communicator share: its identity, and how it ends.
struct NcclGroup {
  explicit NcclGroup(const std::vector<int>& ranks) : barrier(ranks) {}
  Barrier barrier;
  ncclUniqueId id{};
  std::shared_ptr<gpu::Ending> ending;
};

// What the devices of a platform share.
struct NcclGroups {
  SharedMap<NcclGroup> of;
  gpu::Lookout lookout;  // for calls that do not return
};

// Makes the NCCL collectives of the current CUDA device. `captured`: they may be captured into CUDA graphs.
std::unique_ptr<Collectives> make_nccl_collectives(int rank, int module, NcclGroups& groups, const Abort& abort,
                                                   bool captured);

ncclConfig_t communicator_config();

}  // namespace pmaptrain::cuda
