// Collectives of virtual GPUs, that is, of several devices on one GPU, which share its memory. When the values of the
// others are ready, each rank copies them or adds them up, in rank order.
#pragma once

#include "core/runtime/cuda/collectives.h"
#include "core/runtime/cuda/handles.h"

namespace pmaptrain::cuda {

// State that the ranks of a communicator share.
struct VirtualGroup {
  explicit VirtualGroup(const std::vector<int>& ranks) : barrier(ranks), ranks_calls(ranks.size()) {}
  struct Word {
    RankCall call;
    cudaEvent_t ready = nullptr;  // after this event, the values that others read are complete
    cudaEvent_t read = nullptr;   // after this event, the rank has read the values of others
  };
  Barrier barrier;
  std::vector<Word> ranks_calls;
};
using VirtualGroups = SharedMap<VirtualGroup>;

std::unique_ptr<Collectives> make_virtual_collectives(int rank, int module, VirtualGroups& groups, const Abort& abort);

}  // namespace pmaptrain::cuda
