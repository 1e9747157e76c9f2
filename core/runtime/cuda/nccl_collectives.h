// Collectives between the GPUs of one machine, with NCCL.
#pragma once

#include <nccl.h>

#include "core/runtime/cuda/collectives.h"
#include "core/runtime/gpu/ending.h"
#include "core/runtime/gpu/lookout.h"

namespace pmaptrain::cuda {

// State that the ranks of a communicator share.
struct NcclGroup {
  explicit NcclGroup(const std::vector<int>& ranks) : barrier(ranks) {}
  Barrier barrier;
  ncclUniqueId id{};
  std::shared_ptr<gpu::Ending> ending;
};

// State that the devices of a platform share.
struct NcclGroups {
  SharedMap<NcclGroup> of;
  gpu::Lookout lookout;  // finds calls that do not return
};

// Creates the NCCL collectives of the current CUDA device. `captured` tells whether they may be captured into CUDA
// graphs.
std::unique_ptr<Collectives> make_nccl_collectives(int rank, int module, NcclGroups& groups, const Abort& abort,
                                                   bool captured);

ncclConfig_t communicator_config();

}  // namespace pmaptrain::cuda
