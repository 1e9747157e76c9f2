// Collectives of virtual GPUs, that is, of several devices on one GPU. They share its memory, so each rank reads the
// values of the other ranks there when these are ready, and copies them or adds them up in rank order.
#pragma once

#include "core/runtime/cuda/collectives.h"
#include "core/runtime/cuda/handles.h"

namespace pmaptrain::cuda {

// What the ranks of one communicator share.
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

std::unique_ptr<Collectives> make_virtual_collectives(int rank, int module, VirtualGroups& groups, const Abort& abort);

}  // namespace pmaptrain::cuda
